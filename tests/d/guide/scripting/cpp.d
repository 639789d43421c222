/* With -C the preprocessor runs first.
   @@options: -q -C */
#define TWO 2
#if TWO == 2
BEGIN { printf("%d", TWO * TWO); exit(0); }
#else
nonsense
#endif
/* @@output
4
*/
