/*
 * Each number of arguments, by each family of names.
 *
 * want: a0
 * want: a1 -4
 * want: a2 -4 -4
 * want: a3 -4 -4 -4
 * want: a4 -4 -4 -4 -4
 * want: a5 -4 -4 -4 -4 -4
 * want: a6 -4 -4 -4 -4 -4 -4
 * want: a7 -4 -4 -4 -4 -4 -4 -4
 * want: a8 -4 -4 -4 -4 -4 -4 -4 -4
 * want: a9 -4 -4 -4 -4 -4 -4 -4 -4 -4
 * want: a10 -4 -4 -4 -4 -4 -4 -4 -4 -4 -4
 * want: a11 -4 -4 -4 -4 -4 -4 -4 -4 -4 -4 -4
 * want: a12 -4 -4 -4 -4 -4 -4 -4 -4 -4 -4 -4 -4
 * want: s0
 * want: s12 -4 -4 -4 -4 -4 -4 -4 -4 -4 -4 -4 -4
 * want: v0
 * want: v1 -4
 * want: v12 -4 -4 -4 -4 -4 -4 -4 -4 -4 -4 -4 -4
 */
#define SDT_USE_VARIADIC 1
#include <sys/sdt.h>

void counts(int i);
void counts(int i)
{
	DTRACE_PROBE(test, a0);
	DTRACE_PROBE1(test, a1, i);
	DTRACE_PROBE2(test, a2, i, 2);
	DTRACE_PROBE3(test, a3, i, 2, 3);
	DTRACE_PROBE4(test, a4, i, 2, 3, 4);
	DTRACE_PROBE5(test, a5, i, 2, 3, 4, 5);
	DTRACE_PROBE6(test, a6, i, 2, 3, 4, 5, 6);
	DTRACE_PROBE7(test, a7, i, 2, 3, 4, 5, 6, 7);
	DTRACE_PROBE8(test, a8, i, 2, 3, 4, 5, 6, 7, 8);
	DTRACE_PROBE9(test, a9, i, 2, 3, 4, 5, 6, 7, 8, 9);
	DTRACE_PROBE10(test, a10, i, 2, 3, 4, 5, 6, 7, 8, 9, 10);
	DTRACE_PROBE11(test, a11, i, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11);
	DTRACE_PROBE12(test, a12, i, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12);
	STAP_PROBE(test, s0);
	STAP_PROBE12(test, s12, i, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12);
	STAP_PROBEV(test, v0);
	STAP_PROBEV(test, v1, i);
	STAP_PROBEV(test, v12, i, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12);
}
