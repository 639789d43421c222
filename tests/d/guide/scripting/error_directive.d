/* #error ends the compilation with its text.
   @@exit: 1
   @@stderr: #error: not today */
#error not today
BEGIN { exit(0); }
