/* Strings have no arithmetic.
   @@exit: 1
   @@options: -q -x errtags
   @@stderr: \[D_OP_\w+\] */
BEGIN
{
	trace("a" + 1);
	exit(0);
}
