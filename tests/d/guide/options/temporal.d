/* temporal is always on. */
#pragma D option temporal
BEGIN { trace(1); exit(0); }
/* @@output
1
*/
