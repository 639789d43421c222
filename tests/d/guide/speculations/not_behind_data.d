/* No speculate() behind an action that records.
   @@options: -q -w -x errtags
   @@exit: 1
   @@stderr: \[(D_SPEC_DREC)\] */
BEGIN
{
	trace(1);
	speculate(1);
}
