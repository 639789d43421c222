/* The comma operator evaluates both sides and has the value of the right one. */
BEGIN
{
	x = (y = 3, y + 1);
	printf("%d %d", x, y);
	exit(0);
}
/* @@output
4 3
*/
