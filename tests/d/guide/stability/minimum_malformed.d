/* What is no set of attributes.
   @@exit: 1
   @@stderr: option 'amin' takes attributes */
#pragma D option amin=Good
BEGIN { trace(1); }
