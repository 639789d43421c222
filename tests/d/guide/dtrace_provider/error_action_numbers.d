/* arg2 is the clause, from 0 on, and the message names it, whichever of its actions it was.
   @@stderr: (?s)error in dt_clause_0 for .*error in dt_clause_1 for .*error in dt_clause_3 for */
int z;
BEGIN { trace("x"); trace(1 / z); }
BEGIN { @a[1 / z] = count(); }
BEGIN { trace(""); }
BEGIN /1 / z/ { trace("never"); }
BEGIN { exit(0); }
ERROR { printf("%d ", arg2); }
END { printf("%d", DTRACEFLT_DIVZERO); }
/* @@output
0 1 3 4
*/
