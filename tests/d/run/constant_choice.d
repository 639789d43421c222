/* c ? a : b has the type of both sides also where the condition is a constant, whichever side is taken. */
int64_t v;
char taken[1 ? 3 : 4LL];
BEGIN
{
	printf("%d %d\n", (1 ? 2147483648U : v) << 3, (1 ? 1 : 2LL) << 40);
	printf("%d %d %d\n", sizeof ((1 ? 1 : v) << 1), sizeof ((0 ? v : (char)1) << 1), sizeof ((1 ? (char)1 : (char)2) << 1));
	printf("%d\n", sizeof (taken));
	exit(0);
}
/* @@output
17179869184 1099511627776
8 8 4
3
*/
