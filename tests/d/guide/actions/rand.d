/* rand() gives other numbers each time. */
BEGIN
{
	printf("%d", rand() != rand() || rand() != rand());
	exit(0);
}
/* @@output
1
*/
