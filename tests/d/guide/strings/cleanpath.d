/* cleanpath(): a path without /./, /../ and //. */
BEGIN
{
	printf("%s %s %s %s", cleanpath("/a/./b"), cleanpath("/a/b/../c"), cleanpath("/a//b"), cleanpath("/a/.."));
	exit(0);
}
/* @@output
/a/b /a/c /a/b /
*/
