/* Strings are assigned by value and cut at strsize.
   @@options: -q -x strsize=8 */
BEGIN
{
	s = "0123456789";
	t = s;
	s = "x";
	printf("%s %s %d", s, t, strlen(t));
	exit(0);
}
/* @@output
x 0123456 7
*/
