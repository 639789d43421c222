/* rawbytes: strings are such tables, too.
   @@blanks: any
   @@options: -q -x rawbytes -x strsize=8 */
BEGIN
{
	trace("abc");
	exit(0);
}
/* @@output
  0 1 2 3 4 5 6 7 8 9 a b c d e f 0123456789abcdef
0: 61 62 63 00 00 00 00 00 abc.....
*/
