/*
 * Addresses of IPv6 that hold one of IPv4, mapped or compatible, are shown as that one (DTrace for Linux).  The
 * witnesses of the others are inet_ntop(3) and RFC 5952.  AF_ and ARPHRD_: socket.h, if_arp.h.
 */
BEGIN
{
	this->a = (unsigned char *)alloca(16);
	printf("%s\n", inet_ntoa6(this->a));
	this->a[15] = 1;
	printf("%s\n", inet_ntoa6(this->a));
	this->a[15] = 2;
	printf("%s\n", inet_ntoa6(this->a));
	this->a[12] = 127;
	printf("%s\n", inet_ntoa6(this->a));
	this->a[10] = 0xff;
	this->a[11] = 0xfe;
	printf("%s\n", inet_ntoa6(this->a));
	this->a[11] = 0xff;
	printf("%s\n", inet_ntop(AF_INET6, this->a));
	this->a[8] = 1;
	printf("%s\n", inet_ntop(AF_INET6, this->a));
	printf("%s\n%s\n", inet_ntop(AF_INET, this->a + 12), link_ntop(ARPHRD_ETHER, this->a + 10));
	exit(0);
}
/* @@output
::
::1
0.0.0.2
127.0.0.2
::fffe:7f00:2
127.0.0.2
::100:ffff:7f00:2
127.0.0.2
ff:ff:7f:00:00:02
*/
