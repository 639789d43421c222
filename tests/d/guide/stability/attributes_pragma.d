/* #pragma D attributes and binding are read and checked. */
#pragma D attributes Evolving/Stable/Common x
#pragma D binding "1.0" x
int x;
BEGIN { trace(x); exit(0); }
/* @@output
0
*/
