/* An option that does not exist, or a value that it cannot have, is an error with its place.
   @@exit: 1
   @@stderr: line \d: .*no option 'nosuch' */
#pragma D option nosuch
BEGIN { exit(0); }
