/* Generic pointers take any address; a cast makes them point to something. */
BEGIN
{
	v = (void *)0x10;
	p = (int *)v;
	printf("%p %p %d", v, p + 1, sizeof (v));
	exit(0);
}
/* @@output
10 14 8
*/
