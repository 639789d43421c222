/* dirname(): all but the last part of a path. */
BEGIN
{
	printf("%s %s %s %s %s %s", dirname("/a/b/c"), dirname("c"), dirname("/a/b/"), dirname("/a"), dirname("/"), dirname(""));
	exit(0);
}
/* @@output
/a/b . /a / / .
*/
