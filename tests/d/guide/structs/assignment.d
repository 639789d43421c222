/* Structures are assigned by value. */
struct point { int x; int y; };
struct point p, q;
BEGIN
{
	p.x = 3;
	q = p;
	p.x = 4;
	printf("%d %d", p.x, q.x);
	exit(0);
}
/* @@output
4 3
*/
