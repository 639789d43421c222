/*
 * The kernel's functions by address and by name, from /proc/kallsyms.
 *
 * Reading it takes some ten milliseconds.
 */
#ifndef DTAP_ELF_KSYMS_H
#define DTAP_ELF_KSYMS_H

#include <stdbool.h>
#include <stdint.h>

struct ksyms;

struct ksym {
	uint64_t addr;
	const char *name, *mod;		/* mod: "vmlinux" for the kernel itself */
};

/* Read the present symbols; there are none if the kernel hides their addresses (kptr_restrict).  NULL: no memory. */
struct ksyms *ksyms_read(void);
void ksyms_free(struct ksyms *k);	/* accepts NULL */

/* The function that contains @addr, or NULL.  Its end is where the next one starts. */
const struct ksym *ksyms_at(const struct ksyms *k, uint64_t addr);

/*
 * The addresses of function @name; if @name ends in "*", from the first function with that prefix to the end of the
 * last.  False, and 0: there is none.
 */
bool ksyms_range(const struct ksyms *k, const char *name, uint64_t *lo, uint64_t *hi);

#endif
