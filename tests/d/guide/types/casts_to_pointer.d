/* An integer as a pointer and back. */
BEGIN
{
	p = (int *)0x1234;
	printf("%p %d %x", p, (uintptr_t)p == 0x1234, (uintptr_t)(p + 1));
	exit(0);
}
/* @@output
1234 1 1238
*/
