/* One that the script does not use is, too.
   @@exit: 1
   @@stderr: extraneous argument 'x'
   @@script-args: x */
BEGIN { exit(0); }
