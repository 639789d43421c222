/*
 * Every scalar type, as a variable that the compiler may put where it likes.
 *
 * want: integers c -1 1 -2 2 -4 4 -L L -8 8 1
 * want: others P P P 4f 8f 4 -4
 */
#include <sys/sdt.h>

enum plain { PLAIN_A, PLAIN_B };
enum negative { NEGATIVE_A = -1, NEGATIVE_B };

void integers(char c, signed char sc, unsigned char uc, short s, unsigned short us, int i, unsigned int u,
	      long l, unsigned long ul, long long ll, unsigned long long ull, bool b);
void integers(char c, signed char sc, unsigned char uc, short s, unsigned short us, int i, unsigned int u,
	      long l, unsigned long ul, long long ll, unsigned long long ull, bool b)
{
	DTRACE_PROBE12(test, integers, c, sc, uc, s, us, i, u, l, ul, ll, ull, b);
}

void others(void *p, const char *s, int (*f)(void), float fl, double d, enum plain e, enum negative n);
void others(void *p, const char *s, int (*f)(void), float fl, double d, enum plain e, enum negative n)
{
#ifdef SYSTEMTAP_CXX
	/* SystemTap's header calls every enumeration unsigned in C++. */
	DTRACE_PROBE7(test, others, p, s, f, fl, d, e, (int)n);
#else
	DTRACE_PROBE7(test, others, p, s, f, fl, d, e, n);
#endif
}
