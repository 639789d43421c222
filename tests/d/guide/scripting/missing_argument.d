/* One that was not given is an error.
   @@exit: 1
   @@stderr: macro argument \$1 is not defined */
BEGIN { trace($1); exit(0); }
