/* A string at a pointer to the process's memory: copyinstr(). */
BEGIN
{
	printf("%d", sizeof ((char *)0));
	exit(0);
}
/* @@output
8
*/
