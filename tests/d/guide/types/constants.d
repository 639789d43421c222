/* Decimal, octal and hexadecimal constants. */
BEGIN
{
	printf("%d %d %d %d %d\n", 12345, 012345, 0x12345, 0X1f, 0);
	exit(0);
}
/* @@output
12345 5349 74565 31 0
*/
