/* Without a translator for the types it is an error.
   @@exit: 1
   @@options: -q -x errtags
   @@stderr: \[D_XLATE_NONE\] */
struct raw { int a; };
struct nice { int b; };
BEGIN { trace(xlate <struct nice> ((struct raw *)0).b); exit(0); }
