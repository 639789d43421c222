/*
 * What the files debug*.c share.  Nobody else includes this.
 */
#ifndef DTAP_ELF_DEBUG_PRIV_H
#define DTAP_ELF_DEBUG_PRIV_H

#include "elf/debug.h"

enum { DEBUG_MAX_SCOPES = 32, DEBUG_ENDED = 16 };

struct debug {
	Dwarf *dw;
	Dwarf_CFI *eh;			/* of the file itself; its own memory */
	Elf *elf;			/* of another file, or NULL */
	int fd;
	char *ended[DEBUG_ENDED];		/* end_strings's copies */
	size_t nended;
};

/* What contains an address: the compilation unit, the function, its blocks. */
struct debug_scopes {
	Dwarf_Die v[DEBUG_MAX_SCOPES];
	int n, func;		/* @func: the function's number, 0: none; its variables are asked for */
	int frame;		/* of the function whose frame it is: the same, but of an inlined one */
	uint64_t pc;
};

/* The compilation unit that has code at @pc. */
bool debug_find_unit(struct debug *d, uint64_t pc, Dwarf_Die *unit);

/*
 * What contains @pc.  @inlined: the variables of the copy of the inlined function of that name are asked for, which must be
 * there; NULL: those of the function whose code it is.  False: there is no such thing.
 */
bool debug_find_scopes(struct debug *d, uint64_t pc, const char *inlined, struct debug_scopes *s);

/*
 * debug_expr.c: compute the expression @ops, @n of them, of attribute @attr, at s->pc: into all of @ret but its
 * type.  NULL, or why that cannot be.
 */
const char *debug_eval(struct debug *d, const struct debug_scopes *s, Dwarf_Attribute *attr, const Dwarf_Op *ops, size_t n,
		       struct debug_var *ret);

#endif
