/*
 * Names for addresses: file, function and line in a process; functions of the kernel.
 *
 * Mappings come from /proc, or the kernel's log where a process has ended before they were read (maplog.h); functions from
 * the mapped files, those of the kernel from /proc/kallsyms.  What was found is kept after the process has ended.
 */
#ifndef DTAP_PROBE_SYMBOLS_H
#define DTAP_PROBE_SYMBOLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct obj;
struct symbols;

/* An address and what is known about it.  The texts are valid as long as the symbols. */
struct symbol {
	uint64_t addr, off, size;	/* @off: offset in the function, which has @size bytes; 0: unknown */
	uint64_t mod_off;		/* offset from the start of the module's mapping */
	const char *mod, *path, *func;	/* NULL: unknown */
	struct obj *obj;		/* the file that contains it, which stays open; NULL: unknown */
	uint64_t obj_addr;		/* the address there */
};

struct symbols *symbols_new(void);	/* NULL: out of memory */
void symbols_free(struct symbols *s);	/* accepts NULL */

/*
 * Follow what all processes map from now on, so that also addresses in those that have ended by now get names.  If the kernel
 * refuses, all stays as without.  A descriptor that becomes readable when symbols_followed() is to be called, or -1.
 */
int symbols_follow(struct symbols *s);
void symbols_followed(struct symbols *s);

/* Read the current mappings of process @pid. */
void symbols_watch(struct symbols *s, uint32_t pid);

/*
 * Find the symbol of ret->addr, an address of process @pid or of the kernel.  If no known mapping contains it, the
 * process's mappings are read again, at most once for each @stack, a growing number.
 */
void symbols_user(struct symbols *s, uint32_t pid, uint64_t stack, struct symbol *ret);
void symbols_kernel(struct symbols *s, struct symbol *ret);

/* The source file and line; for a caller, those of its call, which is before the address. */
bool symbol_source(const struct symbol *sym, bool is_caller, const char **file, int *line);

#endif
