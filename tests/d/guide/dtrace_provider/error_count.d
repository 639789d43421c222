/* Each fault fires it once.
   @@blanks: any
   @@stderr: divide-by-zero */
int z;
tick-1ms { n++; }
tick-1ms /n <= 3/ { trace(1 / z); }
tick-1ms /n == 5/ { exit(0); }
ERROR { @ = count(); }
/* @@output
3
*/
