/* Several BEGIN clauses run in the order of the script. */
BEGIN { trace("a"); }
BEGIN { trace("b"); }
BEGIN { trace("c"); exit(0); }
/* @@output
abc
*/
