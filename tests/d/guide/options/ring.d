/* bufpolicy=ring: all that is printed comes at the end; when it fits nothing is lost. */
#pragma D option bufpolicy=ring
BEGIN { trace("a"); }
tick-1ms { trace("b"); exit(0); }
END { trace("c"); }
/* @@output
abc
*/
