/* A constant that is longer than strsize is cut where it is used as a string.
   @@options: -q -x strsize=8 */
BEGIN
{
	s = "abcdefghijklmnop";
	printf("%s %d", s, s == "abcdefg");
	exit(0);
}
/* @@output
abcdefg 1
*/
