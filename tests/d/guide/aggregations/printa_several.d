/* Several aggregations with the same keys in one line; what one of them does not have is 0. */
BEGIN
{
	@a["x"] = count();
	@b["x"] = sum(7);
	@b["y"] = sum(3);
	exit(0);
}
END
{
	printa("%s %@d %@d\n", @a, @b);
}
/* @@output
y 0 3
x 1 7
*/
