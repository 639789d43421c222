/* A format without conversions. */
BEGIN
{
	printf("just text\n");
	exit(0);
}
/* @@output
just text
*/
