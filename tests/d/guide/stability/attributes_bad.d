/* What is no attribute is an error.
   @@exit: 1
   @@options: -q -x errtags
   @@stderr: \[D_PRAGMA_INVAL\] */
#pragma D attributes Nice/Stable/Common x
int x;
BEGIN { exit(0); }
