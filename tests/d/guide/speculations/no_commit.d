/* No commit() behind speculate().
   @@options: -q -w -x errtags
   @@exit: 1
   @@stderr: \[(D_COMM_DREC)\] */
BEGIN
{
	speculate(1);
	commit(1);
}
