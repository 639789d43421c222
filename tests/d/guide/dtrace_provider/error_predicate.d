/* A fault in the predicate has action 0; the clause does not run.
   @@stderr: divide-by-zero in predicate */
int z;
BEGIN /1 / z/ { trace("never"); }
BEGIN { exit(0); }
ERROR { printf("%d", arg2); }
/* @@output
0
*/
