/* Strings have no arithmetic but an offset: "a" + 1.
   @@exit: 1
   @@options: -q -x errtags
   @@stderr: \[D_OP_\w+\] */
BEGIN
{
	trace("a" - 1);
	exit(0);
}
