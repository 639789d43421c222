/*
 * Declarations shared by debug*.c; no other file includes this.
 */
#ifndef DTAP_ELF_DEBUG_PRIV_H
#define DTAP_ELF_DEBUG_PRIV_H

#include "elf/debug.h"

enum { DEBUG_MAX_SCOPES = 32, DEBUG_ENDED = 16 };

struct debug {
	Dwarf *dw;
	Dwarf_CFI *eh;			/* of the file itself; owned */
	Elf *elf;			/* a separate debug file, or NULL */
	struct file *file;		/* of @elf */
	char *ended[DEBUG_ENDED];		/* the copies of end_strings() */
	size_t nended;
};

/* The scopes that contain an address: the compilation unit, the function, its blocks. */
struct debug_scopes {
	Dwarf_Die v[DEBUG_MAX_SCOPES];
	int n, func;		/* @func: index of the function whose variables are searched; 0: none */
	int frame;		/* index of the function that owns the frame: @func, or what @func is inlined in */
	uint64_t pc;
};

/* The compilation unit that has code at @pc. */
bool debug_find_unit(struct debug *d, uint64_t pc, Dwarf_Die *unit);

/*
 * Find the scopes that contain @pc.  @inlined: search the variables of the inlined copy of that function; NULL: those
 * of the function that contains @pc.  False: there is none.
 */
bool debug_find_scopes(struct debug *d, uint64_t pc, const char *inlined, struct debug_scopes *s);

/* debug_line.c: the path of the file in which @die is declared, as the compiler was given it; NULL: not known. */
const char *debug_decl_file(Dwarf_Die *die);

/*
 * debug_expr.c: evaluate the expression @ops, @n of them, of attribute @attr, at s->pc: sets all of @ret but its
 * type.  NULL, or why that is not possible.
 */
const char *debug_eval(struct debug *d, const struct debug_scopes *s, Dwarf_Attribute *attr, const Dwarf_Op *ops, size_t n,
		       struct debug_var *ret);

#endif
