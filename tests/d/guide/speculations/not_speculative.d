/* Assignments and what is in other clauses are not speculative. */
BEGIN { s = speculation(); }
BEGIN { speculate(s); x = 5; printf("x"); }
BEGIN { printf("%d", x); exit(0); }
/* @@output
5
*/
