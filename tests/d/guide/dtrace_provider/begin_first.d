/* BEGIN fires before all others, END after them. */
tick-1ms { trace("2"); exit(0); }
END { trace("3"); }
BEGIN { trace("1"); }
/* @@output
123
*/
