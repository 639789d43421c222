/* A malformed pragma.
   @@exit: 1
   @@stderr: malformed #pragma option */
#pragma D option
BEGIN { exit(0); }
