/* It can be printed as often as one likes.
   @@blanks: any */
BEGIN
{
	@ = count();
	exit(0);
}
END
{
	printa("%@d\n", @);
	printa("%@d\n", @);
}
/* @@output
1
1
*/
