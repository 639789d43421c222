/* Each tick fires its own clauses; the script ends at the third one. */
tick-2ms { n++; }
tick-2ms /n < 3/ { printf("%d ", n); }
tick-2ms /n == 3/ { printf("%d", n); exit(0); }
/* @@output
1 2 3
*/
