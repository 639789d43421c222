/* 0 fills the width with zeros, behind the sign. */
BEGIN
{
	printf("%05d %05d %08x %#06x", 42, -42, 255, 255);
	exit(0);
}
/* @@output
00042 -0042 000000ff 0x00ff
*/
