/* Thread-local and clause-local structures. */
struct point { int x; int y; };
struct point p, q;
BEGIN
{
	p.x = 5;
	self->p = p;
	this->q = self->p;
	self->p.x = 6;
	printf("%d %d", self->p.x, this->q.x);
	exit(0);
}
/* @@output
6 5
*/
