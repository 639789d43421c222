/* Bit-fields share their words as in C. */
struct f { unsigned int a:1, b:3, c:12; int d:4; };
struct g { char a; int b:7; };
struct f v;
BEGIN
{
	printf("%d %d", sizeof (struct f), sizeof (struct g));
	exit(0);
}
/* @@output
4 4
*/
