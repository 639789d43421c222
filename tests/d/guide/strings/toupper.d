/* toupper() and tolower(): letters of ASCII. */
BEGIN
{
	printf("%s %s", toupper("aBc-1"), tolower("AbC-1"));
	exit(0);
}
/* @@output
ABC-1 abc-1
*/
