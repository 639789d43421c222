/* One that is not known yet is refused.
   @@exit: 1
   @@stderr: a version of D up to */
#pragma D option version=9.0
BEGIN { exit(0); }
