/* A structure as key of an array: its bytes, whichever variable or memory they are in. */
struct point { int x; short y; char n[3]; };
struct point p, q;
int seen[struct point, int];
BEGIN
{
	p.x = 1;
	p.y = -2;
	p.n[2] = 'z';
	a[p] = 7;
	q = p;
	q.n[2] = 'y';
	a[q] = 8;
	printf("%d %d ", a[p], a[q]);
	q.n[2] = 'z';
	printf("%d\n", a[q]);
	this->m = (struct point *)alloca(sizeof(struct point));
	this->m->x = 1;
	this->m->y = -2;
	this->m->n[2] = 'z';
	seen[*this->m, 5] = 3;
	a[*this->m]++;
	printf("%d %d %d %d\n", a[p], seen[p, 5], seen[p, 6], seen[q, 5]);
	a[p] = 0;
	printf("%d\n", a[q]);
	exit(0);
}
/* @@output
7 8 7
8 3 0 3
0
*/
