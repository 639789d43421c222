/* Negative keys. */
BEGIN
{
	a[-1] = 1;
	a[1] = 2;
	printf("%d %d %d", a[-1], a[1], a[0]);
	exit(0);
}
/* @@output
1 2 0
*/
