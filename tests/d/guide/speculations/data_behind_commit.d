/* No recording action behind commit().
   @@options: -q -w -x errtags
   @@exit: 1
   @@stderr: \[(D_DREC_COMM)\] */
BEGIN
{
	commit(1);
	trace(1);
}
