/* Many arguments. */
BEGIN
{
	printf("%d %d %d %d %d %d %d %d %d %d %s", 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, "x");
	exit(0);
}
/* @@output
1 2 3 4 5 6 7 8 9 10 x
*/
