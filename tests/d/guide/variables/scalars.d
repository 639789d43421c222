/* A scalar has the type of its first assignment. */
BEGIN
{
	x = 123;
	s = "hi";
	printf("%d %s %d %d", x, s, sizeof (x), sizeof (s));
	exit(0);
}
/* @@output
123 hi 4 256
*/
