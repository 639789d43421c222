/* tick fires on one CPU: n ticks are n firings. */
tick-1ms { n++; }
tick-1ms /n == 10/ { printf("%d", n); exit(0); }
/* @@output
10
*/
