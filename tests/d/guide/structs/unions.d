/* A union's members share their bytes. */
union number { uint32_t word; uint8_t byte[4]; };
union number n;
BEGIN
{
	n.word = 0x01020304;
	printf("%d %d %d", n.byte[0], n.byte[3], sizeof (n));
	exit(0);
}
/* @@output
4 1 4
*/
