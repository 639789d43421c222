/* -U takes it back.
   @@options: -q -C -D N=5 -U N */
#ifdef N
BEGIN { trace("yes"); exit(0); }
#else
BEGIN { trace("no"); exit(0); }
#endif
/* @@output
no
*/
