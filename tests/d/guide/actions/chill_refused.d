/* chill() is refused.
   @@options: -q -w
   @@exit: 1
   @@stderr: chill */
BEGIN
{
	chill(1000);
	exit(0);
}
