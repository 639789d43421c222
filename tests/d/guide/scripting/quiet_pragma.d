/* #pragma D option quiet is -q.
   @@options: */
#pragma D option quiet
BEGIN { trace("x"); exit(0); }
/* @@output
x
*/
