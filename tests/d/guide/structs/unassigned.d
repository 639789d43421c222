/* The members of one that was never assigned are zero. */
struct point { int x; int y; };
struct point p, q;
BEGIN
{
	printf("%d %d", p.x, p.y);
	exit(0);
}
/* @@output
0 0
*/
