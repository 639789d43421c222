/* in6_addr_t is the kernel's struct in6_addr: a pointer to it is what the functions on addresses of IP version 6 take.
   The texts are those of RFC 4291, section 2.2.
   @@options: -q
   @@blanks: any */
in6_addr_t *address;

BEGIN
{
	bytes = (char *)alloca(16);
	address = (in6_addr_t *)bytes;
	printf("%s\n", inet_ntoa6(address));
	bytes[15] = 1;
	printf("%s\n", inet_ntoa6(address));
	bytes[0] = (char)0xff;
	bytes[1] = 1;
	bytes[14] = 1;
	printf("%s %s\n", inet_ntoa6(address), inet_ntop(AF_INET6, address));
}

BEGIN
{
	printf("%s", inet_ntoa6((in6_addr_t *)0));
}

ERROR
{
	printf("%d %x\n", arg4 == DTRACEFLT_BADADDR, arg5);
	exit(0);
}
/* @@stderr: invalid address \(0x0\)
   @@output
::
::1
ff01::101 ff01::101
1 0
*/
