/* No second speculate().
   @@options: -q -w -x errtags
   @@exit: 1
   @@stderr: \[(D_SPEC_SPEC)\] */
BEGIN
{
	speculate(1);
	speculate(2);
}
