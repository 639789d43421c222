/* %p prints an address in hexadecimal. */
BEGIN
{
	printf("%p %p %10p", (void *)0xabc, 0x123, (char *)16);
	exit(0);
}
/* @@output
abc 123         10
*/
