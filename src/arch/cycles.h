/*
 * The counter that the C library's clock reads as well, in user mode: x86-64's time-stamp counter; aarch64's virtual
 * counter (Arm ARM, CNTVCT_EL0), which runs at the same rate on all processors.
 */
#ifndef DTAP_ARCH_CYCLES_H
#define DTAP_ARCH_CYCLES_H

#include <stdint.h>

#if defined(__x86_64__)

#define ARCH_CYCLES "tsc"	/* the kernel's clock source by this counter */

static inline uint64_t arch_cycles(void)
{
	return __builtin_ia32_rdtsc();
}

#elif defined(__aarch64__)

#define ARCH_CYCLES "arch_sys_counter"

static inline uint64_t arch_cycles(void)
{
	uint64_t v;

	__asm__ volatile("mrs %0, cntvct_el0" : "=r"(v));
	return v;
}

#endif

#endif
