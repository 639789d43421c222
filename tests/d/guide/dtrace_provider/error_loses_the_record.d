/* A clause that faults prints nothing of what it has recorded.
   @@stderr: divide-by-zero */
int z;
BEGIN { trace("lost"); trace(1 / z); }
BEGIN { trace("kept"); exit(0); }
/* @@output
kept
*/
