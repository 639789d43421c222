/* The same with variables, whose values are known only when the script runs. */
BEGIN
{
	a = 7;
	b = 3;
	printf("%d %d %d\n", a + b, a - b, a * b);
	printf("%d %d %d %d\n", a / b, -a / b, a / -b, -a / -b);
	printf("%d %d %d %d\n", a % b, -a % b, a % -b, -a % -b);
	exit(0);
}
/* @@output
10 4 21
2 -2 -2 2
1 -1 1 -1
*/
