/* No exit().
   @@options: -q -w -x errtags
   @@exit: 1
   @@stderr: \[(D_EXIT_SPEC)\] */
BEGIN
{
	speculate(1);
	exit(0);
}
