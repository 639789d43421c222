/* A string of one character is not a character. */
BEGIN
{
	printf("%s %d", "a", 'a');
	exit(0);
}
/* @@output
a 97
*/
