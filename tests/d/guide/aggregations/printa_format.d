/* printa() with a format, for each key. */
BEGIN
{
	@["x", 2] = sum(5);
	@["y", 1] = sum(3);
	exit(0);
}
END
{
	printa("%s/%d: %@d\n", @);
}
/* @@output
y/1: 3
x/2: 5
*/
