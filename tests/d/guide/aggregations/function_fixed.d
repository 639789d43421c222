/* An aggregation has one function.
   @@exit: 1
   @@options: -q -x errtags
   @@stderr: \[D_AGG_REDEF\] */
BEGIN
{
	@a = count();
	@a = sum(1);
	exit(0);
}
