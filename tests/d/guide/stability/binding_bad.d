/* So is what is no version.
   @@exit: 1
   @@options: -q -x errtags
   @@stderr: \[D_PRAGMA_INVAL\] */
#pragma D binding "one" x
int x;
BEGIN { exit(0); }
