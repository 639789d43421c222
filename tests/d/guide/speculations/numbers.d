/* Numbers are given from 1 on; one more than nspec is 0.
   @@options: -q -x nspec=3
   @@stderr: ^dtrace: 1 failed speculation \(no speculative buffer available\)\n$ */
BEGIN { printf("%d %d %d", speculation(), speculation(), speculation()); }
BEGIN { printf(" %d", speculation()); exit(0); }
/* @@output
1 2 3 0
*/
