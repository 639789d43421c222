/* %C prints one that cannot be seen as the escape of a constant. */
BEGIN
{
	printf("%C %C %C %C %C", 97, 10, 9, 0, 7);
	exit(0);
}
/* @@output
a \n \t \0 \a
*/
