/* -D defines a macro.
   @@options: -q -C -D N=5 -D 'S="x"' */
BEGIN { printf("%d %s", N, S); exit(0); }
/* @@output
5 x
*/
