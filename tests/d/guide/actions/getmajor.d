/* getmajor() and getminor() of a device number. */
BEGIN
{
	printf("%d %d", getmajor((8 << 8) | 3), getminor((8 << 8) | 3));
	exit(0);
}
/* @@output
8 3
*/
