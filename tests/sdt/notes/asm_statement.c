/*
 * Markers inside other asm statements.
 *
 * want: raw -4 8
 * want: simple -4
 * want: template0
 * want: template2 -4 8f
 * x86_64 only
 * theirs in c only
 */
#include <sys/sdt.h>

int statements(int i, double d);
int statements(int i, double d)
{
	int before, after;

	__asm__ volatile ("nop\n"
			  STAP_PROBE_ASM(test, raw, -4@%%edi 8@4(%%rsp))
			  "nop" : "=a" (before));
	__asm__ volatile (STAP_PROBE_ASM(test, simple, -4@%edi));
	__asm__ volatile (STAP_PROBE_ASM(test, template0, STAP_PROBE_ASM_TEMPLATE(0)) : : "r" (i));
	__asm__ volatile ("movl %[in], %[out]\n"
			  STAP_PROBE_ASM(test, template2, STAP_PROBE_ASM_TEMPLATE(2))
			  "incl %[out]"
			  : [out] "=&r" (after)
			  : [in] "r" (i), STAP_PROBE_ASM_OPERANDS(2, i, d));
	return after + before;
}
