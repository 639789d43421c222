/* aggsortpos: which of the aggregations decides.
   @@blanks: any
   @@options: -q -x aggsortpos=1 */
BEGIN
{
	@a["x"] = sum(1);
	@a["y"] = sum(2);
	@b["x"] = sum(9);
	@b["y"] = sum(8);
	exit(0);
}
END
{
	printa("%s %@d %@d\n", @a, @b);
}
/* @@output
y 2 8
x 1 9
*/
