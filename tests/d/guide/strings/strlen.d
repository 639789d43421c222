/* strlen(): the length without the zero. */
BEGIN
{
	printf("%d %d %d", strlen(""), strlen("abc"), strlen("a\tb"));
	exit(0);
}
/* @@output
0 3 3
*/
