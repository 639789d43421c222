/* The guide's way: speculate under a condition, decide at the end of it.
   @@blanks: any */
int n;
tick-1ms { self->s = speculation(); n++; }
tick-1ms /self->s/ { speculate(self->s); printf("%d ", n); }
tick-1ms /self->s && n % 2 == 0/ { commit(self->s); self->s = 0; }
tick-1ms /self->s && n % 2/ { discard(self->s); self->s = 0; }
tick-1ms /n == 6/ { exit(0); }
/* @@output
2 4 6
*/
