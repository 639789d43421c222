/* exit() ends the session: the clause it is in goes on, those behind it in the same firing do not run any more;
   the status is that of END when it calls exit(), too.
   @@exit: 4 */
BEGIN { trace("before "); }
BEGIN { exit(3); trace("a"); }
BEGIN { trace("b"); }
tick-1ms { trace("never"); }
END { trace("c"); exit(4); }
END { trace("d"); }
/* @@output
before acd
*/
