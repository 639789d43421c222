/* In a probe description, too.
   @@script-args: 1ms */
tick-$1 { trace("tick"); exit(0); }
/* @@output
tick
*/
