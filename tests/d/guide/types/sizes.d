/* The integer types of D and their sizes: those of the LP64 model. */
BEGIN
{
	printf("%d %d %d %d %d\n", sizeof (char), sizeof (short), sizeof (int), sizeof (long), sizeof (long long));
	printf("%d %d %d %d\n", sizeof (int8_t), sizeof (int16_t), sizeof (int32_t), sizeof (int64_t));
	printf("%d %d %d %d\n", sizeof (uint8_t), sizeof (uint16_t), sizeof (uint32_t), sizeof (uint64_t));
	printf("%d %d %d\n", sizeof (intptr_t), sizeof (uintptr_t), sizeof (void *));
	printf("%d %d %d\n", sizeof (float), sizeof (double), sizeof (long double));
	exit(0);
}
/* @@output
1 2 4 8 8
1 2 4 8
1 2 4 8
8 8 8
4 8 16
*/
