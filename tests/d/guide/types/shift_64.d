/* Shifts of 64-bit values. */
BEGIN
{
	printf("%x %x %d\n", (uint64_t)1 << 63, (uint64_t)1 << 63 >> 63, (int64_t)1 << 40);
	n = 35;
	printf("%x\n", (uint64_t)1 << n);
	exit(0);
}
/* @@output
8000000000000000 1 1099511627776
800000000
*/
