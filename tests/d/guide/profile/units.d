/* tick in all its units. */
tick-1000000ns { a = 1; }
tick-1000us { b = 1; }
tick-1ms { c = 1; }
tick-1000hz { d = 1; }
tick-1000 { e = 1; }
tick-1msec { f = 1; }
tick-1000usec { g = 1; }
tick-3ms /a + b + c + d + e + f + g == 7/ { trace("all"); exit(0); }
/* @@output
all
*/
