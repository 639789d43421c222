struct tail { int n; int rest[]; };
struct tail t;
union named { int i; string s; };
union named u;			/* error: D_UNKNOWN */
int a[4];
BEGIN
{
	t.n = 1;
	t.rest[3] = 1;		/* error: D_ARR_BOUNDS */
	trace(a);
	x[a] = 1;		/* error: D_UNKNOWN */
	tracemem(a, 16);
	print(a);
	print(t);
}
