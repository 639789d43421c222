/* The paths are cleaned as Python's os.path.normpath does, but a slash at the end stays, as in DTrace. */
BEGIN
{
	printf("[%s]\n", cleanpath("/"));
	printf("[%s]\n", cleanpath("/a"));
	printf("[%s]\n", cleanpath("/a//b"));
	printf("[%s]\n", cleanpath("/a/./b"));
	printf("[%s]\n", cleanpath("/a/b/../c"));
	printf("[%s]\n", cleanpath("/a/b/c/../../d"));
	printf("[%s]\n", cleanpath("/../x"));
	printf("[%s]\n", cleanpath("/a/../../b"));
	printf("[%s]\n", cleanpath("/./."));
	printf("[%s]\n", cleanpath("a/b/../c"));
	printf("[%s]\n", cleanpath("../../x"));
	printf("[%s]\n", cleanpath("a/../../b"));
	printf("[%s]\n", cleanpath(".../x"));
	printf("[%s]\n", cleanpath("/..a/.b/c.."));
	printf("[%s]\n", cleanpath("/a/b/./../c/././d"));
	printf("[%s]\n", cleanpath("/a/b/"));
	printf("[%s]\n", cleanpath("/a/b/.."));
	printf("[%s]\n", cleanpath(""));
	exit(0);
}
/* @@output
[/]
[/a]
[/a/b]
[/a/b]
[/a/c]
[/a/d]
[/x]
[/b]
[/]
[a/c]
[../../x]
[../b]
[.../x]
[/..a/.b/c..]
[/a/c/d]
[/a/b/]
[/a/]
[]
*/
