/* Capitals and small letters differ. */
BEGIN
{
	x = 1;
	X = 2;
	printf("%d %d", x, X);
	exit(0);
}
/* @@output
1 2
*/
