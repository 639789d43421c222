/* After a commit or a discard the buffer is free for another speculation. */
BEGIN { a = speculation(); }
BEGIN { discard(a); }
BEGIN { b = speculation(); }
BEGIN { speculate(b); printf("second"); }
BEGIN { commit(b); }
BEGIN { printf(" %d %d", a, b); exit(0); }
/* @@output
second 1 1
*/
