/* Speculation 0 is none: speculate() leaves its clause without effect, commit() and discard() do nothing. */
int none;
BEGIN { speculate(none); printf("lost"); }
BEGIN { commit(none); }
BEGIN { discard(none); }
BEGIN { printf("ok"); exit(0); }
/* @@output
ok
*/
