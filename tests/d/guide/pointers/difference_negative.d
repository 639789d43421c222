/* The difference of two pointers has a sign. */
BEGIN
{
	p = (int *)0x100;
	printf("%d", p - (p + 3));
	exit(0);
}
/* @@output
-3
*/
