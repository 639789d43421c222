/* Several aggregations with the same keys: one row a tuple, a value that is missing is 0. */
BEGIN
{
	@calls["a"] = count();
	@calls["b"] = count();
	@calls["b"] = count();
	@total["a"] = sum(100);
	@total["b"] = sum(7);
	printa("%s: %@d calls, %@d in all\n", @calls, @total);
	trunc(@calls);
	trunc(@total);
	exit(0);
}
/* @@output
a: 1 calls, 100 in all
b: 2 calls, 7 in all
*/
