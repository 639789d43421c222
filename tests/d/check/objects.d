struct point { int x, y; };
struct big { int a[300]; };
struct deep { struct point p[4]; unsigned bits:3; char text[8]; };
struct point p;
struct deep d;
self struct big one, other;
int a[10];
this int small[256];
this int large[257];			/* error: D_UNKNOWN */
self int many[100000];
struct point by[struct big];		/* error: D_UNKNOWN */

BEGIN
{
	p.x = "text";			/* error: D_OP_INCOMPAT */
	p = d;				/* error: D_OP_INCOMPAT */
	p = 0;				/* error: D_OP_INCOMPAT */
	d.text = "text";		/* error: D_OP_ARRFUN */
	a = a;				/* error: D_OP_ARRFUN */
	a[10] = 1;			/* error: D_ARR_BOUNDS */
	a[-1] = 1;			/* error: D_ARR_BOUNDS */
	d.p[4].x = 1;			/* error: D_ARR_BOUNDS */
	a["text"] = 1;			/* error: D_OP_INCOMPAT */
	this->q = &p;			/* error: D_ADDROF_VAR */
	this->q = &d.p[1];
	this->r = &a[1];
	p->x = 1;			/* error: D_OP_PTR */
	d.nosuch = 1;			/* error: D_TYPE_MEMBER */
	trace(p);
	self->one = self->other;	/* error: D_UNKNOWN */
	self->many[99999] = this->small[255];
	by2[1] = p;
	by2[1].x++;
	by2[p] = p;			/* error: D_PROTO_ARG */
}
