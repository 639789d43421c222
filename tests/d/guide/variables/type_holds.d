/* The first type holds: a string is not assigned to an integer.
   @@exit: 1
   @@options: -q -x errtags
   @@stderr: \[D_OP_INCOMPAT\] */
BEGIN
{
	x = 1;
	x = "text";
	exit(0);
}
