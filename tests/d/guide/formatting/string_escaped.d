/* %S prints it with escapes. */
BEGIN
{
	printf("%S", "a\n\tb\\\"");
	exit(0);
}
/* @@output
a\n\tb\\\"
*/
