/*
 * Constants, expressions, arrays, qualified objects, names that are macros, statements without braces.
 *
 * want: constants -4 4 -L 8 -4 1 P
 * want: expressions -4 L -4 -4 P
 * want: objects P P -4 -4 1 -2
 * want: one -4
 * want: other
 * want: expanded -4
 * c only
 */
#include <sys/sdt.h>

#define PROVIDER	test
#define MARKER		expanded

struct pair { int a; unsigned char b; volatile short c; };
static int array[4];
extern const int table[];
const int table[2] = { 1, 2 };

void constants(void);
void constants(void)
{
	DTRACE_PROBE7(test, constants, -1, 4000000000u, 5L, 18446744073709551615ull, 'c', (_Bool)1, "text");
}

void expressions(int i, struct pair *p);
void expressions(int i, struct pair *p)
{
	DTRACE_PROBE5(test, expressions, i + 1, sizeof(i), p->b + p->c, i ? 3 : 5, &p->b);
}

void objects(const struct pair *p, volatile int v, const int c);
void objects(const struct pair *p, volatile int v, const int c)
{
	DTRACE_PROBE6(test, objects, array, table, v, c, p->b, p->c);
}

void statements(int i);
void statements(int i)
{
	if (i)
		DTRACE_PROBE1(test, one, i);
	else
		DTRACE_PROBE(test, other);
	DTRACE_PROBE1(PROVIDER, MARKER, i);
}
