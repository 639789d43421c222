/* A string constant is of the type string, with its terminating zero. */
BEGIN
{
	printf("%s|%s|%d", "abc", "", strlen("a b"));
	exit(0);
}
/* @@output
abc||3
*/
