/* What it has assigned stays.
   @@stderr: divide-by-zero */
int z, x;
BEGIN { x = 5; trace(1 / z); x = 6; }
BEGIN { trace(x); exit(0); }
/* @@output
5
*/
