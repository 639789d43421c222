/* %o, and # puts a 0 in front. */
BEGIN
{
	printf("%o %#o %o", 8, 8, -1);
	exit(0);
}
/* @@output
10 010 37777777777
*/
