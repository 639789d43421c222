/* Without -C a directive of the preprocessor is an error that says so.
   @@exit: 1
   @@stderr: -C */
#define TWO 2
BEGIN { trace(TWO); exit(0); }
