/* %d and %i print an integer of the argument's size and sign. */
BEGIN
{
	printf("%d %i %d %d %d", 42, -42, (uint8_t)255, (uint64_t)-1, (char)200);
	exit(0);
}
/* @@output
42 -42 255 18446744073709551615 -56
*/
