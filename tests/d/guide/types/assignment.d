/* The assignment operators; an assignment has a value. */
BEGIN
{
	x = 10;
	x += 5; printf("%d ", x);
	x -= 3; printf("%d ", x);
	x *= 4; printf("%d ", x);
	x /= 5; printf("%d ", x);
	x %= 5; printf("%d ", x);
	x <<= 3; printf("%d ", x);
	x >>= 1; printf("%d ", x);
	x |= 3; printf("%d ", x);
	x &= 0x1e; printf("%d ", x);
	x ^= 0xff; printf("%d ", x);
	y = x = 7;
	printf("%d %d", x, y);
	exit(0);
}
/* @@output
15 12 48 9 4 32 16 19 18 237 7 7
*/
