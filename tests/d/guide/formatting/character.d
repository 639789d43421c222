/* %c prints a character. */
BEGIN
{
	printf("%c%c%c|%3c|%-3c|", 97, 98, 0x63, 120, 121);
	exit(0);
}
/* @@output
abc|  x|y  |
*/
