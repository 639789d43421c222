/* strtoll(): text as an integer, in base 10 or another. */
BEGIN
{
	printf("%d %d %d %d %d", strtoll("123"), strtoll("-45abc"), strtoll("ff", 16), strtoll("0x1f", 16), strtoll("zz"));
	exit(0);
}
/* @@output
123 -45 255 31 0
*/
