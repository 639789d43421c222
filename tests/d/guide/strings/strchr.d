/* strchr() and strrchr(): the rest of a string from a character on, or NULL. */
BEGIN
{
	printf("%s %s %d", strchr("path/to/file", '/'), strrchr("path/to/file", '/'), strchr("abc", 'x') == NULL);
	exit(0);
}
/* @@output
/to/file /file 1
*/
