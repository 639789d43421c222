/* Widths and flags in it. */
BEGIN
{
	@["abc"] = sum(42);
	exit(0);
}
END
{
	printa("[%-8s][%@05d][%@x]\n", @);
}
/* @@output
[abc     ][00042][2a]
*/
