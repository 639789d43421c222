/* printa() with a format: once a tuple, its parts in order, the value where %@ stands. */
BEGIN
{
	@n["a", 1] = sum(10);
	@n["b", 2] = sum(20);
	printa("%s/%d = %@d\n", @n);
	printa("%@d %s\n", @n);
	clear(@n);
	printa("%s %@d\n", @n);
	trunc(@n);
	exit(0);
}
/* @@output
a/1 = 10
b/2 = 20
10 a
20 b
a 0
b 0
*/
