/* The address of a part of a variable: what it points to is read and written as the variable. */
int a[5];
self long own[3];
struct { int x; char c[4]; } s;
BEGIN
{
	p = &a[1];
	*p = 5;
	p[1] = 7;
	p++;
	*p += 3;
	this->i = 3;
	q = &a[this->i];
	*q = 9;
	printf("%d %d %d %d %d\n", a[1], a[2], a[3], q - p, (int)&a[4] - (int)&a[2]);
	pc = &s.c[1];
	*pc = 'x';
	px = &s.x;
	*px = -1;
	po = &self->own[2];
	*po = 77;
	printf("%c %d %d\n", s.c[1], s.x, self->own[2]);
}
BEGIN
/p[0] == 10 && *(q - 1) == a[2]/
{
	printf("%d %d\n", p[-1], *po);
	exit(0);
}
/* @@output
5 10 9 1 8
x -1 77
5 77
*/
