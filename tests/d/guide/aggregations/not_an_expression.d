/* Its value cannot be read in an expression.
   @@exit: 1
   @@options: -q -x errtags
   @@stderr: \[D_\w+\] */
BEGIN
{
	@a = count();
	x = @a + 1;
	exit(0);
}
