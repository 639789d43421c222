/* An inline is replaced by its expression wherever it stands. */
inline int hour = 3600;
inline string greeting = "hello";
inline int twice = 2 * hour;
BEGIN
{
	printf("%s %d %d", greeting, twice, hour > 100);
	exit(0);
}
/* @@output
hello 7200 1
*/
