/* Structures, unions and arrays as wholes: trace() shows their bytes, a 0 gives back a dynamic variable, strings have
   characters, floating-point variables hold what is assigned. */
struct pair { int a; char b[4]; };
struct pair p, all[int];
self struct pair mine;
union u { int i; char c[4]; } u;
short n[5];
float f;
double d, more[int];
BEGIN
{
	p.a = 7;
	p.b[1] = 'A';
	n[1] = 0x4142;
	u.i = 0x44434241;
	trace(p);
	trace(n);
	trace(u);
	all[1] = p;
	self->mine = p;
	all[1] = 0;
	self->mine = 0;
	printf("%d %d %d\n", all[1].a, self->mine.a, p.a);
}
BEGIN
{
	s = "hello";
	self->t["x"] = "abc";
	printf("%c%c %d %d %c %c\n", s[1], *s, s[5], s[100], self->t["x"][2], "const"[2]);
	d = more[1];
	more[2] = d;
	printf("%e %g %G %.2f\n", f, d, more[2], more[1]);
	printf("%x %x\n", getmajor(0x23456789), getminor(0x23456789));
	exit(s[0] == 'h' ? 0 : 1);
}
/* @@output

             0  1  2  3  4  5  6  7  8  9  a  b  c  d  e  f  0123456789abcdef
         0: 07 00 00 00 00 41 00 00                          .....A..

             0  1  2  3  4  5  6  7  8  9  a  b  c  d  e  f  0123456789abcdef
         0: 00 00 42 41 00 00 00 00 00 00                    ..BA......

             0  1  2  3  4  5  6  7  8  9  a  b  c  d  e  f  0123456789abcdef
         0: 41 42 43 44                                      ABCD
0 0 7
eh 0 0 c n
0.000000e+00 0 0 0.00
234 56789
*/
