/* A format can take some of the keys, and the value wherever it likes.
   @@blanks: any */
BEGIN
{
	@["x", 2] = sum(5);
	exit(0);
}
END
{
	printa("%@d %@5d %s\n", @);
}
/* @@output
5 5 x
*/
