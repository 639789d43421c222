/* Negative values in hexadecimal have the digits of their size. */
BEGIN
{
	printf("%x %x %x %x", (char)-1, (short)-1, -1, (long)-1);
	exit(0);
}
/* @@output
ff ffff ffffffff ffffffffffffffff
*/
