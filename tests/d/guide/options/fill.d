/* bufpolicy=fill: the same, and a full buffer would end it.
   @@exit: 3 */
#pragma D option bufpolicy=fill
BEGIN { trace("a"); }
tick-1ms { trace("b"); exit(3); }
END { trace("c"); }
/* @@output
abc
*/
