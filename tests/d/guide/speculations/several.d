/* Several speculations at a time.
   @@blanks: any */
#pragma D option nspec=2
BEGIN { a = speculation(); b = speculation(); }
BEGIN { speculate(a); printf("a1 "); }
BEGIN { speculate(b); printf("b1 "); }
BEGIN { speculate(a); printf("a2 "); }
BEGIN { commit(b); }
BEGIN { commit(a); }
BEGIN { exit(0); }
/* @@output
b1 a1 a2
*/
