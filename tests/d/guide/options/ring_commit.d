/* Speculations are committed at the end. */
#pragma D option bufpolicy=ring
BEGIN { s = speculation(); }
BEGIN { speculate(s); trace("x"); }
BEGIN { trace("1"); }
BEGIN { commit(s); }
BEGIN { trace("2"); exit(0); }
/* @@output
1x2
*/
