/*
 * The name of an array is the address of its first element (DTrace guide for Linux, "Pointer and Array Relationship"): a
 * pointer that is assigned from it, or compared with it, is to the variable itself, not to a copy.
 */
int a[5], m[2][3];
int *x, *y;
struct { short s[4]; } v;
short *p;

BEGIN
{
	x = a;
	y = &a[2];
	*y = 7;
	x[1] = 4;
	printf("%d %d %d %d %d\n", a[1], a[2], y - x, y - a, &a[1] - a);
	printf("%d %d %d %d\n", x == a, a == x, y == a, y > a);
	*(x + 3) = 9;
	printf("%d %d %d\n", a[3], *(a + 3), x == &a[0]);
	x = m[1];
	*x = 5;
	x[2] = 6;
	printf("%d %d %d\n", m[1][0], m[1][2], m[0][0]);
	p = v.s;
	p[3] = -2;
	printf("%d %d\n", v.s[3], p - v.s);
}

BEGIN
{
	*x += 1;
	printf("%d %d\n", m[1][0], *(y - 1));
	exit(0);
}
/* @@output
4 7 2 2 1
1 1 0 1
9 9 1
5 6 0
-2 0
6 4
*/
