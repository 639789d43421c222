/* Network byte order and device numbers; the witness is arithmetic on paper. */
BEGIN
{
	printf("%x %x %lx\n", htons(0x1234), htonl(0x12345678), htonll(0x123456789abcdef0));
	printf("%x %x %lx\n", ntohs(0x3412), ntohl(0x78563412), ntohll(0xf0debc9a78563412));
	printf("%x\n", htons(0xff01));
	/* makedev(0x12345, 0x6789a) of glibc */
	printf("%x %x\n", getmajor(0x6783459a), getminor(0x6783459a));
	printf("%d %d\n", getmajor(0x800001), getminor(0x800001));
	exit(0);
}
/* @@output
3412 78563412 f0debc9a78563412
1234 12345678 123456789abcdef0
1ff
678 3459a
8 1
*/
