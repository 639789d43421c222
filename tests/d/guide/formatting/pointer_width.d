/* ? is a width of 16, the digits of a pointer. */
BEGIN
{
	printf("[%?x][%?p][%-?d]", 255, (void *)255, 7);
	exit(0);
}
/* @@output
[              ff][              ff][7               ]
*/
