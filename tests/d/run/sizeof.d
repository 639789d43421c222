/* The sizes of the 64-bit data model. */
struct pair { char a; int b; char c; };
BEGIN
{
	printf("%d %d %d %d %d\n", sizeof (char), sizeof (short), sizeof (int), sizeof (long), sizeof (void *));
	printf("%d %d %d\n", sizeof (struct pair), offsetof(struct pair, b), offsetof(struct pair, c));
	exit(0);
}
/* @@output
1 2 4 8 8
12 4 8
*/
