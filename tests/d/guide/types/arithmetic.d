/* The binary arithmetic operators; division truncates toward zero, and % has the sign of the left side. */
BEGIN
{
	printf("%d %d %d\n", 7 + 3, 7 - 3, 7 * 3);
	printf("%d %d %d %d\n", 7 / 3, -7 / 3, 7 / -3, -7 / -3);
	printf("%d %d %d %d\n", 7 % 3, -7 % 3, 7 % -3, -7 % -3);
	exit(0);
}
/* @@output
10 4 21
2 -2 -2 2
1 -1 1 -1
*/
