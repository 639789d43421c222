/* C's operators on D's 64-bit and smaller integers; the expected values are those of the same C expressions. */
BEGIN
{
	printf("%d %d %d %d %d\n", 7 + 3, 7 - 10, 7 * -3, -7 / 2, -7 % 2);
	printf("%d %d %d %d %d\n", 6 & 3, 6 | 3, 6 ^ 3, ~6, !6);
	printf("%d %d %d\n", 1LL << 40, -16 >> 2, 0x8000000000000000 >> 63);
	printf("%d %d %d %d %d %d\n", 1 < 2, 2 <= 2, 3 > 4, 4 >= 5, 5 == 5, 6 != 6);
	printf("%d %d %d\n", 1 && 0, 1 || 0, 1 ^^ 1);
	printf("%d %d\n", 1 + 2 * 3 - 4 / 2 % 3, (1 + 2) * 3);
	printf("%d %d\n", (int)0x1ffffffff, (char)300);
	printf("%d %d\n", -1 < 1U, (long long)-1 < 1);
	exit(0);
}
/* @@output
10 -3 -21 -3 -1
2 7 5 -7 0
1099511627776 -4 1
1 1 0 0 1 0
0 1 0
5 9
-1 44
0 1
*/
