/* Takes and returns structures of all kinds, and prints them, for a tracer to be compared with. */
#include <stdio.h>

struct two { long a, b; };
struct small { char c; short s; int i; unsigned flag : 3; int low : 5; };
struct pair { int x, y; };
struct mixed { double d; long l; };
struct other { long l; double d; };
struct floats { float f, g; int i; };
struct big { long a[8]; };
struct __attribute__((packed)) packed { char c; long l; };
struct bytes { unsigned char b[6]; };
struct nested { struct pair p; struct two *to; };

static struct two behind = { 71, 72 };

#define NOIPA __attribute__((noipa, noinline))
NOIPA struct two two(struct two v) { printf("%ld %ld\n", v.a, v.b); return (struct two){ v.b, -v.a }; }
NOIPA struct small small(struct small v)
{
	printf("%d %d %d %d %d\n", v.c, v.s, v.i, v.flag, v.low);
	v.c = -v.c, v.s = -v.s, v.i = -v.i, v.flag = 6, v.low = -2;
	return v;
}
NOIPA struct pair pair(struct pair v) { printf("%d %d\n", v.x, v.y); return (struct pair){ v.y, v.x }; }
NOIPA struct mixed mixed(struct mixed v) { printf("%ld\n", v.l); v.l++; return v; }
NOIPA struct other other(struct other v) { printf("%ld\n", v.l); v.l++; return v; }
NOIPA struct floats floats(struct floats v) { printf("%d\n", v.i); v.i++; return v; }
NOIPA struct big big(struct big v) { printf("%ld %ld\n", v.a[1], v.a[7]); v.a[7] = 5; return v; }
NOIPA struct packed packed(struct packed v) { printf("%d %ld\n", v.c, v.l); v.l = -v.l; return v; }
NOIPA struct bytes bytes(struct bytes v) { printf("%d %d\n", v.b[1], v.b[5]); v.b[5]++; return v; }
NOIPA struct nested nested(struct nested v) { printf("%d %d %ld\n", v.p.x, v.p.y, v.to->b); v.p.y = 9; return v; }

int main(void)
{
	struct two t = two((struct two){ 5, -6 });
	struct small s;
	struct pair p;
	struct mixed m;
	struct other o;
	struct floats f;
	struct big b;
	struct packed k;
	struct bytes y;
	struct nested n;

	setvbuf(stdout, NULL, _IOLBF, 0);
	printf("= %ld %ld\n", t.a, t.b);
	s = small((struct small){ 'x', -300, 70000, 5, -7 });
	printf("= %d %d %d %d %d\n", s.c, s.s, s.i, s.flag, s.low);
	p = pair((struct pair){ 1, -2 });
	printf("= %d %d\n", p.x, p.y);
	m = mixed((struct mixed){ 1.5, 33 });
	printf("= %ld\n", m.l);
	o = other((struct other){ 44, 2.5 });
	printf("= %ld\n", o.l);
	f = floats((struct floats){ 1, 2, 55 });
	printf("= %d\n", f.i);
	b = big((struct big){ { 1, 2, 3, 4, 5, 6, 7, 8 } });
	printf("= %ld %ld\n", b.a[1], b.a[7]);
	k = packed((struct packed){ 3, 1L << 40 });
	printf("= %d %ld\n", k.c, k.l);
	y = bytes((struct bytes){ { 1, 2, 3, 4, 5, 6 } });
	printf("= %d %d\n", y.b[1], y.b[5]);
	n = nested((struct nested){ { 7, 8 }, &behind });
	printf("= %d %d %ld\n", n.p.x, n.p.y, n.to->b);
	return 0;
}
