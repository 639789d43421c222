/* basename(): the last part of a path. */
BEGIN
{
	printf("%s %s %s [%s] %s %s", basename("/a/b/c"), basename("c"), basename("/a/b/"), basename("/"), basename("a//b//"), basename(""));
	exit(0);
}
/* @@output
c c b [/] b .
*/
