/* No destructive action.
   @@options: -q -w -x errtags
   @@exit: 1
   @@stderr: \[(D_ACT_SPEC)\] */
BEGIN
{
	speculate(1);
	system("true");
}
