/* arg0 to arg9 are int64_t whatever the probe gives. */
BEGIN
{
	printf("%d %d", sizeof (arg0), sizeof (arg9));
	exit(0);
}
/* @@output
8 8
*/
