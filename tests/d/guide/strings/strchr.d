/* strchr() and strrchr(): the rest of a string from a character on, or nothing. */
BEGIN
{
	printf("%s %s [%s]", strchr("path/to/file", '/'), strrchr("path/to/file", '/'), strchr("abc", 'x'));
	exit(0);
}
/* @@output
/to/file /file []
*/
