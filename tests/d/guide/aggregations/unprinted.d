/* What no printa() has printed is printed at the end, and nothing else.
   @@blanks: any */
BEGIN
{
	@a = sum(1);
	@b = sum(2);
	@c = sum(3);
	exit(0);
}
END
{
	printa("b %@d\n", @b);
}
/* @@output
b 2
1
3
*/
