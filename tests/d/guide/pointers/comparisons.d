/* Pointers compare as addresses. */
BEGIN
{
	a = (char *)0x10;
	b = a + 1;
	printf("%d%d%d%d %d", a < b, a == b, a != b, a + 1 == b, a == NULL);
	exit(0);
}
/* @@output
1011 0
*/
