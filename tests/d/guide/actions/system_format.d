/* system() formats its command as printf() does.
   @@options: -q -w */
BEGIN
{
	system("echo %s %d%%", "x", 5);
	exit(0);
}
/* @@output
x 5%
*/
