/*
 * Markers in loops, in inlined functions and beside memory that the program only writes.
 *
 * want: loop -4 -4 -4
 * want: inlined P -4
 * want: local P
 * want: reload -4
 */
#include <sys/sdt.h>

struct pair { int a, b; };
int global;

int loop(const struct pair *p, int *out);
int loop(const struct pair *p, int *out)
{
	int i, sum = 0;

	for (i = 0; i < p->a; i++) {
		sum += p->b;
		*out = sum;
		DTRACE_PROBE3(test, loop, i, sum, p->b);
	}
	return sum;
}

static inline int inlined(const char *who, int n)
{
	DTRACE_PROBE2(test, inlined, who, n);
	return n * 3;
}

int caller(int n);
int caller(int n)
{
	struct pair seen_only_by_tracer = { n, 2 };

	DTRACE_PROBE1(test, local, &seen_only_by_tracer);
	return inlined("first", n) + inlined("second", 7);
}

int reload(void);
int reload(void)
{
	int before = global;

	DTRACE_PROBE1(test, reload, before);
	return before + global;
}
