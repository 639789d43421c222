/* trace() of an array of char: text, or a table where it is none. */
char text[6], bytes[5];
BEGIN
{
	text[0] = 'a';
	text[1] = '\n';
	bytes[0] = 'a';
	bytes[1] = 7;
	bytes[2] = 1;
	bytes[3] = 'z';
	trace(text);
	trace(bytes);
	exit(0);
}
/* @@output
a

             0  1  2  3  4  5  6  7  8  9  a  b  c  d  e  f  0123456789abcdef
         0: 61 07 01 7a 00                                   a..z.
*/
