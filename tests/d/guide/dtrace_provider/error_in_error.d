/* Faults in ERROR are not told.
   @@stderr: ^dtrace: error on enabled probe ID 1 [^\n]*\n$ */
int z;
BEGIN { trace(1 / z); }
BEGIN { exit(0); }
ERROR { trace(1 / z); }
/* @@output

*/
