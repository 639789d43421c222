/* The same flags for the keys and the value of printa(). */
BEGIN
{
	@["k", 255] = sum(7);
	exit(0);
}
END { printa("[%5s][%#x][%+@d]\n", @); }
/* @@output
[    k][0xff][+7]
*/
