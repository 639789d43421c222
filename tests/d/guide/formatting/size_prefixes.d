/* hh, h, l and ll convert the value first, as a cast in C. */
BEGIN
{
	printf("%hd %hhd %hx %hhx %ld %lld %lx", 0x12345, 0x1ff, 0x12345, 0x1ff, 5, -5, 255);
	exit(0);
}
/* @@output
9029 -1 2345 ff 5 -5 ff
*/
