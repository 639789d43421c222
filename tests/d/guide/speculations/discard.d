/* What is discarded is never seen. */
BEGIN { self->s = speculation(); }
BEGIN { speculate(self->s); printf("one "); }
BEGIN { discard(self->s); }
BEGIN { printf("nothing"); exit(0); }
/* @@output
nothing
*/
