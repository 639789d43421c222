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

/* As they are now; where their addresses are a secret there are none.  NULL: no memory. */
struct ksyms *ksyms_read(void);
void ksyms_free(struct ksyms *k);	/* accepts NULL */

/* The function that @addr is in, as far as its end is known, or NULL. */
const struct ksym *ksyms_at(const struct ksyms *k, uint64_t addr);

/*
 * Where function @name is; where it ends in "*", all that begin so, from the first to the end of the last.  false, and 0:
 * there is none.
 */
bool ksyms_range(const struct ksyms *k, const char *name, uint64_t *lo, uint64_t *hi);

#endif
