/*
 * Debug information: where a function's variables are at an address, and which types they have.
 *
 * Uses libdw, which reads DWARF 2 to 5.  The information is in the file itself, or found by its build id below
 * /usr/lib/debug.  Addresses are the file's, as in obj.h.  A location that is neither a register and a displacement
 * nor parts in registers (values that were optimized away) is refused with a reason.
 *
 * DWARF 5: 2.5 location expressions, 2.6 location descriptions, 4.1 data objects, 5.5 arrays, 5.7 structures.
 */
#ifndef DTAP_ELF_DEBUG_H
#define DTAP_ELF_DEBUG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <elfutils/libdw.h>

#include "arch/calc.h"

struct debug;
struct obj;
struct strbuf;

/* The debug information of @o, read on the first call, or NULL.  It is closed with @o. */
struct debug *obj_debug(struct obj *o);

/* The libdw handle. */
Dwarf *debug_dwarf(const struct debug *d);

/* Called by obj_close(); accepts NULL. */
void debug_close(struct debug *d);

/*
 * The first address at which the variables of the function that starts at @entry are valid: after its prologue if they
 * are in its frame, as compilers do without optimization; else @entry.
 */
uint64_t debug_body(struct debug *d, uint64_t entry);

/* The source file and line where the function that starts at @entry is declared; false: unknown. */
bool debug_source(struct debug *d, uint64_t entry, const char **file, int *line);

/* Call @fn for each address at which an inlined copy of a function begins, with the function's name and declaration. */
void debug_each_inlined(struct debug *d,
			void (*fn)(void *ctx, const char *name, uint64_t pc, const char *file, int line), void *ctx);

/* A callee of a function: called, and then it returns to @return_pc, or inlined. */
struct debug_callee {
	const char *name, *file;	/* @file NULL: its declaration is not known */
	int line;
	uint64_t pc;			/* where it begins; 0: not in this unit */
	uint64_t return_pc;		/* 0: it is inlined */
	const char *caller, *caller_file;	/* the inlined function that calls it; @caller NULL: the function itself */
	int caller_line;
	unsigned int depth;		/* 1: a callee of the function itself, 2: of a function inlined in it ... */
};

/*
 * Call @fn for each callee of the function that starts at @entry, as optimizing compilers describe them (DWARF 5, 3.4);
 * neither for calls through pointers nor for tail calls.  Also for those of functions inlined in it, up to @depth deep.
 */
void debug_each_callee(struct debug *d, uint64_t entry, unsigned int depth,
		       void (*fn)(void *ctx, const struct debug_callee *c), void *ctx);

/* The same for each inlined copy of a function whose name matches @pattern: it is the caller of depth 1. */
void debug_each_copied_callee(struct debug *d, const char *pattern, unsigned int depth,
			      void (*fn)(void *ctx, const struct debug_callee *c), void *ctx);

/*
 * At @pc: how far the address behind its function's return address is from the stack pointer; false: that is not known, or
 * counts from another register.
 */
bool debug_frame_size(struct debug *d, uint64_t pc, int64_t *ret);

/* The name of the function that starts at @entry, or NULL. */
const char *debug_name(struct debug *d, uint64_t entry);

/* A label; in an inlined copy also that function's name and declaration (@file NULL: not known). */
struct debug_label {
	const char *name, *func, *file;
	int line;
	uint64_t pc;
};

/* Call @fn for each label of the function that starts at @entry, without those of functions inlined in it. */
void debug_each_label(struct debug *d, uint64_t entry, void (*fn)(void *ctx, const struct debug_label *l), void *ctx);

/* The same for the inlined copies of all functions whose names match @pattern (fnmatch(3)). */
void debug_each_copied_label(struct debug *d, const char *pattern, void (*fn)(void *ctx, const struct debug_label *l),
			     void *ctx);

/* Does a statement begin at @pc?  If not, *before is the start of the last one before it, or 0. */
bool debug_is_statement(struct debug *d, uint64_t pc, uint64_t *before);

/* The source file and line of the code at @pc; false: unknown. */
bool debug_source_at(struct debug *d, uint64_t pc, const char **file, int *line);

/* Does @path match @file as users write it: the whole path, its end, or a pattern for one of these? */
bool debug_is_file(const char *path, const char *file);

/* The first address of a statement at line @line of @file in the function that starts at @entry; 0: none. */
uint64_t debug_line(struct debug *d, uint64_t entry, const char *file, int line);

/* The first line from @line on that has code of the function, else the last one before it; 0: none. */
int debug_nearest_line(struct debug *d, uint64_t entry, const char *file, int line);

/* The last line of @file that has code of the function; 0: none. */
int debug_last_line(struct debug *d, uint64_t entry, const char *file);

enum debug_base {
	DEBUG_CONST,		/* 0 */
	DEBUG_REG,		/* the value of register @reg, in DWARF's numbering for the machine */
	DEBUG_ADDR,		/* the load bias: the address in the process of the file's address 0 */
	DEBUG_TLS,		/* the thread's copy of the file's block of thread-local variables */
};

enum { DEBUG_MAX_PARTS = 8, DEBUG_NO_REG = 0xffff };

/* The next @size bytes of a variable are in the low bytes of register @reg; DEBUG_NO_REG: their place is not known. */
struct debug_part {
	uint16_t reg, size;
};

/*
 * A variable: at the address @base + @off; if @is_value, that sum itself; if @nparts is not 0, in parts.  If @nsteps is not 0
 * the address or value is what they compute, plus @off.
 */
struct debug_var {
	struct calc_step steps[CALC_MAX_STEPS];
	unsigned int nsteps;
	enum debug_base base;
	unsigned int reg;
	int64_t off;
	bool is_value;
	struct debug_part parts[DEBUG_MAX_PARTS];
	unsigned int nparts;
	Dwarf_Die type;
};

/*
 * The variable @name in scope at @pc: of the block, the function or the file.  NULL, or why not.  The function is the
 * one that contains @pc, or, if @inlined is not NULL, the copy of function @inlined in it.
 */
const char *debug_var(struct debug *d, uint64_t pc, const char *inlined, const char *name, struct debug_var *ret);

/*
 * Where a function returns a structure @type (bare) by the machine's calling convention: in *ret, whose base is the
 * result register.  NULL, or why that is not known.  System V ABI, AMD64 supplement, 3.2.3 "Returning of Values".
 */
const char *debug_struct_result(const Dwarf_Die *type, struct debug_var *ret);

/* The return type of the function that contains @pc; false: void, or not known. */
bool debug_result(struct debug *d, uint64_t pc, Dwarf_Die *type);

/*
 * The variable @name outside functions, in the source file @file (as for debug_is_file(); of several that with the
 * shortest path) or, NULL, in any.
 */
const char *debug_global(struct debug *d, const char *name, const char *file, struct debug_var *ret);

/* The type called @name, "struct x", "union x", "enum x" or a typedef's or base type's name. */
bool debug_type(struct debug *d, const char *name, Dwarf_Die *ret);

/* Call @fn for each named parameter (@parms) and local variable (@locals) in scope at @pc, the outermost first. */
void debug_each_var(struct debug *d, uint64_t pc, const char *inlined, bool parms, bool locals,
		    void (*fn)(void *ctx, const char *name, const Dwarf_Die *type), void *ctx);

/* --- types -------------------------------------------------------------------------------------------- */

enum debug_kind { DEBUG_INT, DEBUG_POINTER, DEBUG_ARRAY, DEBUG_STRUCT, DEBUG_FLOAT, DEBUG_OTHER };

struct debug_shape {
	enum debug_kind kind;
	uint64_t size;		/* bytes, for an array those of an element; 0: unknown */
	bool sign;		/* INT: is it signed? */
};

/* @type without typedefs and qualifiers: *bare, which may be @type, and its shape. */
void debug_shape(const Dwarf_Die *type, Dwarf_Die *bare, struct debug_shape *ret);

/* The type that @type, bare, points to, or of its elements if it is an array; false: void, or neither. */
bool debug_target(const Dwarf_Die *type, Dwarf_Die *ret);

/* The size of a value of the type, bytes; 0: unknown.  The number of dimensions of the array @type, bare. */
uint64_t debug_size(const Dwarf_Die *type);
unsigned int debug_dims(const Dwarf_Die *type);

/* A member of a structure; a bit field is @bits wide, from bit @bit of the number of @width bytes at @off. */
struct debug_member {
	const char *name;	/* NULL: an anonymous structure or union */
	Dwarf_Die type;
	int64_t off;
	uint8_t width, bit, bits;	/* bits 0: it is no bit field */
	const char *why;	/* why its location is not known, or NULL */
};

/* Find member @name of the structure @type, bare.  NULL, or why it cannot be found. */
const char *debug_member(const Dwarf_Die *type, const char *name, struct debug_member *ret);

/* Call @fn for each member of the structure @type, bare. */
void debug_each_member(const Dwarf_Die *type, void (*fn)(void *ctx, const struct debug_member *m), void *ctx);

/* The number of elements in dimension @dim of the array @type, bare; 0: unknown. */
uint64_t debug_count(const Dwarf_Die *type, unsigned int dim);

/* Is it a character's type? */
bool debug_is_char(const Dwarf_Die *type);

/* Append the type's name to @out as stap -L writes it: "struct node*", "char const*". */
void debug_type_name(const Dwarf_Die *type, struct strbuf *out);

#endif
