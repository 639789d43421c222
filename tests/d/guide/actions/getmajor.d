/* getmajor() and getminor() of a device number as the kernel has it. */
BEGIN
{
	printf("%d %d", getmajor((8 << 20) | 3), getminor((8 << 20) | 3));
	exit(0);
}
/* @@output
8 3
*/
