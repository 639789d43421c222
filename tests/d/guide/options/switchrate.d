/* switchrate=10ms: when records are printed is not what is printed. */
#pragma D option switchrate=10ms
tick-1ms { trace(n++); }
tick-1ms /n == 3/ { exit(0); }
/* @@output
012
*/
