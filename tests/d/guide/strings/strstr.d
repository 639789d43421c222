/* strstr(): the rest of a string from another one on, or NULL. */
BEGIN
{
	printf("%s %d", strstr("one two three", "two"), strstr("one", "two") == NULL);
	exit(0);
}
/* @@output
two three 1
*/
