/* Faults in ERROR are not told.
   @@stderr: ^dtrace: error in dt_clause_0 [^\n]*\n$ */
int z;
BEGIN { trace(1 / z); }
BEGIN { exit(0); }
ERROR { trace(1 / z); }
/* @@output

*/
