/* Precedence is C's. */
BEGIN
{
	printf("%d %d %d\n", 2 + 3 * 4, (2 + 3) * 4, 20 - 4 - 3);
	printf("%d %d %d\n", 1 << 2 + 1, 7 & 3 == 3, (7 & 3) == 3);
	printf("%d %d %d\n", 1 | 2 ^ 3 & 2, !0 + 1, -2 * -3);
	printf("%d %d\n", 1 || 0 && 0, 100 / 10 * 10);
	exit(0);
}
/* @@output
14 20 13
8 1 1
1 2 6
1 100
*/
