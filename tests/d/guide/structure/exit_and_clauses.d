/* exit() ends the session: the clause it is in goes on, those behind it in the same firing do not run any more.
   @@exit: 3 */
BEGIN { trace("before "); }
BEGIN { exit(3); trace("a"); }
BEGIN { trace("b"); }
tick-1ms { trace("never"); }
END { trace("c"); exit(4); }
END { trace("d"); }
/* @@output
before acd
*/
