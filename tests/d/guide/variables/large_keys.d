/* 64-bit keys. */
BEGIN
{
	a[(int64_t)0x100000000] = 1;
	a[0] = 2;
	printf("%d %d", a[(int64_t)0x100000000], a[0]);
	exit(0);
}
/* @@output
1 2
*/
