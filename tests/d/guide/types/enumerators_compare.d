/* Enumerators compare as integers. */
enum e { A, B = 7 };
BEGIN
{
	x = 7;
	printf("%d%d%d", x == B, A < B, x != A);
	exit(0);
}
/* @@output
111
*/
