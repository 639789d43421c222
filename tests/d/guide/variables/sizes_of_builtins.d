/* The types of built-in variables. */
BEGIN
{
	printf("%d %d %d %d %d", sizeof (pid), sizeof (tid), sizeof (timestamp), sizeof (uid), sizeof (execname));
	exit(0);
}
/* @@output
4 4 8 4 256
*/
