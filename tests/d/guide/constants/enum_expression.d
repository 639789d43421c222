/* Their values can be expressions of constants. */
enum { KB = 1 << 10, MB = KB * KB, LAST = MB - 1, NEGATIVE = -5, NEXT };
BEGIN
{
	x = MB;
	printf("%d %d %d %d", x, LAST, NEXT, x == KB << 10);
	exit(0);
}
/* @@output
1048576 1048575 -4 1
*/
