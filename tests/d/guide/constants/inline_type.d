/* It has the type that it was declared with. */
inline char c = 300;
inline uint64_t big = -1;
BEGIN
{
	printf("%d %u %d", c, big, sizeof (c));
	exit(0);
}
/* @@output
44 18446744073709551615 1
*/
