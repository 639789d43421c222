/* Variables that hold structures: global, thread-local and clause-local ones, elements of associative arrays. */
struct point { int x; int y; };
struct thing {
	char c;
	short s;
	struct point p[3];
	uint64_t big;
	unsigned a:3, b:7;
	int neg:5;
	string name;
};
union view { uint32_t whole; uint8_t byte[4]; struct { uint16_t low, high; } half; };
struct point g;
self struct thing st;
this struct point tp;
this union view v;
struct thing by[string, int];

BEGIN
{
	printf("%d %d %s %d\n", g.x, self->st.p[2].y, self->st.name, by["none", 0].b);
	g.x = 3;
	g.y = -4;
	printf("%d %d\n", g.x, g.y);
	self->st.c = 'q';
	self->st.s = -2;
	self->st.p[1].y = 77;
	self->st.p[2] = g;
	self->st.big = 5;
	self->st.big++;
	self->st.big += 10;
	self->st.a = 13;
	self->st.b = 100;
	self->st.neg = -3;
	self->st.name = "hello";
	printf("%c %d %d %d %d %d\n", self->st.c, self->st.s, self->st.p[1].y, self->st.p[2].x, self->st.p[2].y, self->st.big);
	printf("%d %d %d %s\n", self->st.a, self->st.b, self->st.neg, self->st.name);
	printf("%d %d\n", ++self->st.b, self->st.neg--);

	by["k", 1] = self->st;
	self->st.name = "other";
	self->st.p[2].x = 0;
	printf("%d %s %d [%s] %d\n", by["k", 1].p[1].y, by["k", 1].name, by["k", 1].neg, by["k", 2].name, by["k", 1].p[2].x);
	by["k", 1].p[1].y -= 70;
	by["k", 1].big <<= 2;
	this->tp = by["k", 1].p[2];
	this->tp.x *= 7;
	printf("%d %d %d %d\n", this->tp.x, this->tp.y, by["k", 1].p[1].y, by["k", 1].big);

	this->copy = g;
	g.x = 100;
	self->other = this->again = this->copy;
	printf("%d %d %d %d\n", this->copy.x, sizeof (this->copy), self->other.y, this->again.x);
	this->v.whole = 0x11223344;
	this->v.byte[1] = 0xff;
	printf("%x %x %x %x\n", this->v.half.low, this->v.half.high, this->v.byte[3], this->v.whole);
}

BEGIN
{
	printf("%d %d %d %s\n", this->copy.y, this->tp.x, g.x, by["k", 1].name);
	exit(0);
}
/* @@output
0 0  0
3 -4
q -2 77 3 -4 16
5 100 -3 hello
101 -3
77 hello -4 [] 3
21 -4 7 64
3 8 -4 3
ff44 1122 11 1122ff44
-4 21 100 hello
*/
