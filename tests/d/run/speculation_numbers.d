/* A speculate() that has no speculation under way ends its clause; numbers that none can have are faults; a clause
   commits and discards as many as it likes.
   @@options: -q -x nspec=4
   @@stderr: (?s)dt_clause_8 .*illegal operation.*dt_clause_9 .*illegal operation.*dt_clause_10 .*illegal operation */
int reached;
BEGIN { a = speculation(); b = speculation(); c = speculation(); }
BEGIN { speculate(a); printf("a\n"); reached++; }
BEGIN { speculate(b); printf("b\n"); reached++; }
BEGIN { speculate(c); printf("c\n"); reached++; }
BEGIN { speculate(0); reached = 100; }
BEGIN { speculate(4); reached = 100; }
BEGIN { discard(b); commit(c); commit(a); commit(0); discard(0); }
BEGIN { printf("%d\n", reached); }
BEGIN { commit(-1); }
BEGIN { discard(5); }
BEGIN { speculate(1024); }
BEGIN { exit(0); }
/* @@output
c
a
3
*/
