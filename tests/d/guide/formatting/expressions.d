/* Arguments are expressions of any kind. */
BEGIN
{
	x = 3;
	printf("%d %s %d", x * 2, x > 3 ? "more" : "less", sizeof (x));
	exit(0);
}
/* @@output
6 less 4
*/
