/* printa() of an aggregation alone: the default format behind an empty line; it is not printed again at the end.
   @@blanks: any */
BEGIN
{
	@a["x"] = count();
	exit(0);
}
END
{
	printa(@a);
}
/* @@output
x 1
*/
