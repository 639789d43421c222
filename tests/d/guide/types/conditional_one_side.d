/* Only the side that is chosen is evaluated. */
int z, n;
BEGIN
{
	printf("%d ", z ? 1 / z : 7);
	printf("%d ", 1 ? 3 : n++);
	printf("%d", n);
	exit(0);
}
/* @@output
7 3 0
*/
