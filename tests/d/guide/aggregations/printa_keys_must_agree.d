/* printa() of several aggregations: their keys have the same types.
   @@exit: 1
   @@options: -q -x errtags
   @@stderr: \[D_PRINTA_AGGPROTO\] */
BEGIN
{
	@a[1] = count();
	@b["x"] = count();
	printa(@a, @b);
	exit(0);
}
