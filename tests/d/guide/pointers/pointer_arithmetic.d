/* Adding to a pointer steps over elements; the difference of two counts them. */
BEGIN
{
	i = (int *)0x1000;
	c = (char *)0x1000;
	l = (uint64_t *)0x1000;
	printf("%p %p %p\n", i + 1, c + 1, l + 1);
	printf("%p %p %p\n", i - 1, &i[5], l + 2 - 1);
	printf("%d %d %d\n", (i + 5) - i, &l[3] - l, (c + 9) - c);
	exit(0);
}
/* @@output
1004 1001 1008
ffc 1014 1008
5 3 9
*/
