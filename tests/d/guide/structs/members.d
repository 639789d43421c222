/* The members of a structure. */
struct point { int x; int y; };
struct point p, q;
BEGIN
{
	p.x = 3;
	p.y = p.x + 1;
	printf("%d %d %d", p.x, p.y, sizeof (p));
	exit(0);
}
/* @@output
3 4 8
*/
