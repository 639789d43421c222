/* tracemem(): a table of bytes.
   @@blanks: any */
BEGIN
{
	this->p = (char *)alloca(4);
	tracemem(this->p, 4);
	exit(0);
}
/* @@output
  0 1 2 3 4 5 6 7 8 9 a b c d e f 0123456789abcdef
0: 00 00 00 00 ....
*/
