/* ++ and -- step over elements, too. */
BEGIN
{
	p = (short *)0x100;
	p++;
	printf("%p ", p);
	p--;
	p--;
	printf("%p ", p);
	p += 4;
	printf("%p", p);
	exit(0);
}
/* @@output
102 fe 106
*/
