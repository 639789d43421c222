/* Destructive actions need -w.
   @@exit: 1
   @@stderr: destructive */
BEGIN
{
	system("true");
	exit(0);
}
