/* @@inside: no, the descriptions are the case */
/* A clause runs once for each of its descriptions that match: DTrace enables each of them. */
BEGIN, dtrace:::BEGIN, :::BEGIN, END { n++; }
BEGIN { printf("%d\n", n); exit(0); }
END { printf("%d\n", n); }
/* @@output
3
4
*/
