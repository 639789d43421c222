/* Enumerators are constants; those without a value follow the one before. */
enum color { RED, GREEN, BLUE = 10, WHITE };
BEGIN
{
	printf("%d %d %d %d %d", RED, GREEN, BLUE, WHITE, sizeof (enum color));
	exit(0);
}
/* @@output
0 1 10 11 4
*/
