/* u and l make a constant unsigned and long; the sizes tell. */
BEGIN
{
	printf("%d %d %d %d %d\n", sizeof (1), sizeof (1u), sizeof (1l), sizeof (1ul), sizeof (1ull));
	printf("%d %d\n", sizeof (0x7fffffff), sizeof (0x100000000));
	printf("%d %u\n", -1 < 1, -1 < 1u);
	exit(0);
}
/* @@output
4 4 8 8 8
4 8
1 0
*/
