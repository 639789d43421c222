/* As basename(1) and dirname(1) say it. */
BEGIN
{
	printf("[%s] [%s]\n", basename("/foo/bar/baz"), dirname("/foo/bar/baz"));
	printf("[%s] [%s]\n", basename("/foo/bar///baz/"), dirname("/foo/bar///baz/"));
	printf("[%s] [%s]\n", basename("/"), dirname("/"));
	printf("[%s] [%s]\n", basename("foo"), dirname("foo"));
	printf("[%s] [%s]\n", basename("/foo"), dirname("/foo"));
	exit(0);
}
/* @@output
[baz] [/foo/bar]
[baz] [/foo/bar]
[/] [/]
[foo] [.]
[foo] [/]
*/
