/* An aggregation without keys is one line. */
BEGIN
{
	@ = sum(7);
	exit(0);
}
END
{
	printa("total %@d\n", @);
}
/* @@output
total 7
*/
