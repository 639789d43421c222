/* Parts of a key: integers of any size, strings, pointers. */
BEGIN
{
	a[1, "x", (void *)8, 'c', (long)7] = 3;
	printf("%d %d %d", a[1, "x", (void *)8, 'c', 7], a[1, "x", (void *)9, 'c', 7], a[1, "y", (void *)8, 'c', 7]);
	exit(0);
}
/* @@output
3 0 0
*/
