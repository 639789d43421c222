/* The same without a format: columns.
   @@blanks: any */
BEGIN
{
	@a["x"] = count();
	@b["x"] = sum(7);
	@b["y"] = sum(3);
	exit(0);
}
END
{
	printa(@a, @b);
}
/* @@output
y 0 3
x 1 7
*/
