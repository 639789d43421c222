/* %I names the host of an address; a text that is none stays as it is. */
BEGIN
{
	printf("%I %I", "127.0.0.1", "no-address");
	exit(0);
}
/* @@output
localhost no-address
*/
