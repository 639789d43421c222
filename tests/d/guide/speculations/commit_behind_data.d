/* No commit() behind an action that records.
   @@options: -q -w -x errtags
   @@exit: 1
   @@stderr: \[(D_COMM_DREC)\] */
BEGIN
{
	trace(1);
	commit(1);
}
