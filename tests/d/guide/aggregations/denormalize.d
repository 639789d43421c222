/* denormalize() takes it back.
   @@blanks: any */
BEGIN
{
	@["a"] = sum(100);
	normalize(@, 10);
	exit(0);
}
END
{
	printa("%@d\n", @);
	denormalize(@);
	printa("%@d\n", @);
}
/* @@output
10
100
*/
