/* %I prints a text that is no address as it is. */
BEGIN
{
	printf("%I %-12I|", "no-address", "x");
	exit(0);
}
/* @@output
no-address x           |
*/
