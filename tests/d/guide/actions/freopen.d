/* freopen() sends the output into a file, and back with an empty name.
   @@options: -q -w */
BEGIN
{
	printf("one\n");
	freopen("/dev/null");
	printf("two\n");
	freopen("");
	printf("three\n");
	exit(0);
}
/* @@output
one
three
*/
