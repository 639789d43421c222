/* A cast to another pointer changes the step and nothing else. */
BEGIN
{
	p = (char *)0x100;
	printf("%p %p %p", p + 1, (short *)p + 1, (uint64_t *)p + 1);
	exit(0);
}
/* @@output
101 102 108
*/
