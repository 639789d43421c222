/* %a and %A of an address without a symbol. */
BEGIN
{
	printf("%a %A", 0x10, (void *)0x20);
	exit(0);
}
/* @@output
0x10 0x20
*/
