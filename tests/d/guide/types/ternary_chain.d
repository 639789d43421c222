/* Conditional expressions chain to the right. */
BEGIN
{
	x = 2;
	printf("%s", x == 1 ? "a" : x == 2 ? "b" : "c");
	exit(0);
}
/* @@output
b
*/
