/* exit() ends the session; the clause it is in and those behind it in the same firing still run.
   @@exit: 3 */
BEGIN { exit(3); trace("a"); }
BEGIN { trace("b"); }
tick-1ms { trace("never"); }
END { trace("c"); }
/* @@output
abc
*/
