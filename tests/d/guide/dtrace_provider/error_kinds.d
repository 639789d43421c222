/* Divisions by zero are of kind 4.
   @@stderr: divide-by-zero */
int z;
BEGIN { trace(1 / z); }
BEGIN { exit(0); }
ERROR { printf("%d %d", arg4, arg1); }
/* @@output
4 1
*/
