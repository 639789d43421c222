/* So is what nobody commits. */
BEGIN { self->s = speculation(); }
BEGIN { speculate(self->s); printf("one "); }
BEGIN { printf("end"); exit(0); }
/* @@output
end
*/
