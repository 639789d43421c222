/* There is no arithmetic of floating-point numbers.
   @@exit: 1
   @@stderr: float */
BEGIN
{
	trace(1.5 + 1);
	exit(0);
}
