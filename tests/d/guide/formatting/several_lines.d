/* A format may have several lines. */
BEGIN
{
	printf("a\nb\n%d\n", 3);
	exit(0);
}
/* @@output
a
b
3
*/
