/* Digits of hexadecimal constants, large and small. */
BEGIN
{
	printf("%d %d", 0xaBcDeF, 0XFFFFFFFF == 4294967295);
	exit(0);
}
/* @@output
11259375 1
*/
