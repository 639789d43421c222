/* A division by the constant zero is an error of the script.
   @@exit: 1
   @@options: -q -x errtags
   @@stderr: \[D_DIV_ZERO\] */
BEGIN
{
	trace(1 / 0);
	exit(0);
}
