/* Assignments are chained from the right. */
BEGIN
{
	a = b = c = 4;
	a += b -= 1;
	printf("%d %d %d", a, b, c);
	exit(0);
}
/* @@output
7 3 4
*/
