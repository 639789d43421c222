/* The macro __SUNW_D tells who reads the text.
   @@options: -q -C */
#ifdef __SUNW_D
BEGIN { trace(__SUNW_D); exit(0); }
#endif
/* @@output
1
*/
