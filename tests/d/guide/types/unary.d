/* Unary plus and minus. */
BEGIN
{
	a = 5;
	printf("%d %d %d %d\n", -a, +a, - -a, -(-a - 1));
	exit(0);
}
/* @@output
-5 5 5 6
*/
