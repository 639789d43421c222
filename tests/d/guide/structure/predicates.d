/* A predicate is any expression; the clause runs when it is not zero. */
BEGIN { x = 2; s = "on"; p = (int *)8; }
BEGIN /x/ { trace("a"); }
BEGIN /x - 2/ { trace("b"); }
BEGIN /s == "on" && x > 1/ { trace("c"); }
BEGIN /p/ { trace("d"); }
BEGIN /!p/ { trace("e"); }
BEGIN /x++ == 2/ { trace("f"); }
BEGIN /x == 3/ { trace("g"); exit(0); }
/* @@output
acdfg
*/
