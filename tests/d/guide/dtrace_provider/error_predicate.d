/* The clause does not run for a fault in its predicate.
   @@stderr: divide-by-zero at BPF pc */
int z;
BEGIN /1 / z/ { trace("never"); }
BEGIN { exit(0); }
ERROR { printf("%d", arg2); }
/* @@output
0
*/
