/* %u prints it unsigned. */
BEGIN
{
	printf("%u %u %u", 42, -1, (int64_t)-1);
	exit(0);
}
/* @@output
42 4294967295 18446744073709551615
*/
