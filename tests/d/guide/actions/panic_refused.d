/* panic() and breakpoint() are refused.
   @@options: -q -w
   @@exit: 1
   @@stderr: panic */
BEGIN
{
	panic();
	exit(0);
}
