/* A second commit of the same number has nothing to print. */
BEGIN { s = speculation(); }
BEGIN { speculate(s); printf("once"); }
BEGIN { commit(s); }
BEGIN { commit(s); }
BEGIN { speculate(s); printf("late"); }
BEGIN { exit(0); }
/* @@output
once
*/
