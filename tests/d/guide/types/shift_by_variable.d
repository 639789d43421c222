/* Shifts by a variable. */
BEGIN
{
	n = 5;
	printf("%d %d %x", 1 << n, 1024 >> n, (uint64_t)0xff << (n * 8));
	exit(0);
}
/* @@output
32 32 ff0000000000
*/
