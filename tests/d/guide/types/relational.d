/* The relational operators on integers: 1 or 0. */
BEGIN
{
	a = 3;
	b = 4;
	printf("%d%d%d%d%d%d\n", a < b, a <= b, a > b, a >= b, a == b, a != b);
	printf("%d%d%d%d%d%d\n", a < a, a <= a, a > a, a >= a, a == a, a != a);
	exit(0);
}
/* @@output
110001
010110
*/
