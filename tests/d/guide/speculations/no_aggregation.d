/* No aggregation beside speculate().
   @@options: -q -w -x errtags
   @@exit: 1
   @@stderr: \[(D_AGG_SPEC)\] */
BEGIN
{
	speculate(1);
	@ = count();
}
