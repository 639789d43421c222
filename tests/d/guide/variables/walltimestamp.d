/* walltimestamp is the time of day in nanoseconds since 1970: here at least of 2025. */
BEGIN
{
	printf("%d %d", walltimestamp > 1735689600 * (int64_t)1000000000, sizeof (walltimestamp));
	exit(0);
}
/* @@output
1 8
*/
