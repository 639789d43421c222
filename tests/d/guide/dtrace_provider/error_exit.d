/* ERROR can end the session.
   @@exit: 5
   @@stderr: divide-by-zero */
int z;
BEGIN { trace(1 / z); }
tick-1s { trace("never"); }
ERROR { exit(5); }
/* @@output

*/
