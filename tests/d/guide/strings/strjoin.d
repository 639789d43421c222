/* strjoin(): one string behind the other. */
BEGIN
{
	printf("%s [%s] %s", strjoin("abc", "def"), strjoin("", ""), strjoin(strjoin("a", "b"), "c"));
	exit(0);
}
/* @@output
abcdef [] abc
*/
