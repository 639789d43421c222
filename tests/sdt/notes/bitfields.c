/*
 * Bit-fields, of which GCC in C names the smallest integer and all others the declared type.
 *
 * want: fields -1|-4 1|4 8 1 -1
 * ours only
 */
#include <sys/sdt.h>

struct flags {
	int a : 3;
	unsigned int b : 7;
	unsigned long long c : 40;
	bool d : 1;
	signed char e : 5;
};

void fields(const struct flags *f);
void fields(const struct flags *f)
{
	DTRACE_PROBE5(test, fields, f->a, f->b, f->c, f->d, f->e);
}
