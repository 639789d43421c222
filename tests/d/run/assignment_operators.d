/* The operators of the DTrace guide's tables "Assignment" and "Increment and Decrement". */
BEGIN
{
	x = 10;
	x += 5; printf("%d ", x);
	x -= 3; printf("%d ", x);
	x *= 4; printf("%d ", x);
	x /= 5; printf("%d ", x);
	x %= 6; printf("%d ", x);
	x <<= 5; printf("%d ", x);
	x >>= 2; printf("%d ", x);
	x |= 3; printf("%d ", x);
	x &= 18; printf("%d ", x);
	x ^= 5; printf("%d\n", x);
	y = x++; printf("%d %d ", y, x);
	y = ++x; printf("%d %d ", y, x);
	y = x--; printf("%d %d ", y, x);
	y = --x; printf("%d %d\n", y, x);
	exit(0);
}
/* @@output
15 12 48 9 3 96 24 27 18 23
23 24 25 25 25 24 23 23
*/
