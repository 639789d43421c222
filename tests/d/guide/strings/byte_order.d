/* htons() and its like: from the host's order of bytes to the network's and back. */
BEGIN
{
	printf("%x %x %x ", htons(0x1234), htonl(0x12345678), htonll(0x0102030405060708));
	printf("%d", ntohs(htons(80)) == 80 && ntohl(htonl(1)) == 1 && ntohll(htonll(7)) == 7);
	exit(0);
}
/* @@output
3412 78563412 807060504030201 1
*/
