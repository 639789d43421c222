/* What was speculated is printed at the commit, in its order.
   @@blanks: any */
BEGIN { self->s = speculation(); }
BEGIN { speculate(self->s); printf("one "); }
BEGIN { speculate(self->s); printf("two "); }
BEGIN { printf("now: "); }
BEGIN { commit(self->s); }
BEGIN { exit(0); }
/* @@output
now: one two 
*/
