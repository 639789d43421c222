/* strstr(): the rest of a string from another one on, or nothing. */
BEGIN
{
	printf("%s [%s] %d", strstr("one two three", "two"), strstr("one", "two"), strstr("one", "two") == NULL);
	exit(0);
}
/* @@output
two three [] 1
*/
