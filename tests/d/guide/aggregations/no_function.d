/* It takes an aggregating function, nothing else.
   @@exit: 1
   @@options: -q -x errtags
   @@stderr: \[D_AGG_FUNC\] */
BEGIN
{
	@a = 5;
	exit(0);
}
