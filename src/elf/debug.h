/*
 * What debug information says: where a function's variables are at an address, and what types they have.
 *
 * On libdw, which reads DWARF 2 to 5.  The information is the file's own, or that of its build id below
 * /usr/lib/debug.  Addresses are the file's, as in obj.h.  A place that cannot be told by one register and a
 * displacement (pieces, thread-local storage, values that were optimized away) is refused with a reason.
 *
 * DWARF 5: 2.5 location expressions, 2.6 location descriptions, 4.1 data objects, 5.5 arrays, 5.7 structures.
 */
#ifndef DTAP_ELF_DEBUG_H
#define DTAP_ELF_DEBUG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <elfutils/libdw.h>

struct debug;
struct obj;
struct strbuf;

/* The debug information of @o, read when first asked for, or NULL.  It is closed with @o. */
struct debug *obj_debug(struct obj *o);

/* libdw's own. */
Dwarf *debug_dwarf(const struct debug *d);

/* obj_close's; accepts NULL. */
void debug_close(struct debug *d);

/*
 * Where the variables of the function that starts at @entry are valid first: behind its prologue when they are kept in
 * its frame, as compilers do without optimization; else @entry.
 */
uint64_t debug_body(struct debug *d, uint64_t entry);

/* The source file and line where the function that starts at @entry is declared; false: unknown. */
bool debug_source(struct debug *d, uint64_t entry, const char **file, int *line);

/* Call @fn for each place where a copy of a function begins, that was inlined: its name, where it is declared. */
void debug_each_inlined(struct debug *d,
			void (*fn)(void *ctx, const char *name, uint64_t pc, const char *file, int line), void *ctx);

/* What a function calls: a copy of another one in it, or a call, from which that one returns to @return_pc. */
struct debug_callee {
	const char *name, *file;	/* @file NULL: it is not known where it is declared */
	int line;
	uint64_t pc;			/* where it begins; 0: not in this unit */
	uint64_t return_pc;		/* 0: it is a copy */
};

/*
 * Call @fn for each callee of the function that starts at @entry, as compilers tell them when they optimize (DWARF 5, 3.4):
 * neither calls through pointers nor those that the function ends with, which return to its caller.
 */
void debug_each_callee(struct debug *d, uint64_t entry, void (*fn)(void *ctx, const struct debug_callee *c), void *ctx);

/* Call @fn for each label of the function that starts at @entry. */
void debug_each_label(struct debug *d, uint64_t entry, void (*fn)(void *ctx, const char *name, uint64_t pc), void *ctx);

/* Does a statement begin at @pc?  If not, *before is where the last one did, 0: nowhere. */
bool debug_is_statement(struct debug *d, uint64_t pc, uint64_t *before);

/* The source file and line of the code at @pc; false: unknown. */
bool debug_source_at(struct debug *d, uint64_t pc, const char **file, int *line);

/* Is @path the source file that a user calls @file: the whole path or its end? */
bool debug_is_file(const char *path, const char *file);

/* The first address at which a statement of @file's line @line begins in the function that starts at @entry; 0: none. */
uint64_t debug_line(struct debug *d, uint64_t entry, const char *file, int line);

/* The line from @line on that has code of the function, or the last one before it; 0: none. */
int debug_nearest_line(struct debug *d, uint64_t entry, const char *file, int line);

/* The last line of @file that the function has code of, 0: none. */
int debug_last_line(struct debug *d, uint64_t entry, const char *file);

enum debug_base {
	DEBUG_CONST,		/* 0 */
	DEBUG_REG,		/* what register @reg holds, by DWARF's numbers of the machine */
	DEBUG_ADDR,		/* where the file's address 0 is in the process */
};

enum { DEBUG_MAX_PARTS = 8, DEBUG_NO_REG = 0xffff };

/* The next @size bytes of a variable are in a register's low ones, or DEBUG_NO_REG: nowhere that can be told. */
struct debug_part {
	uint16_t reg, size;
};

/*
 * A variable: at the address base + off, or (@is_value) that sum itself, or (@nparts not 0) in parts.
 */
struct debug_var {
	enum debug_base base;
	unsigned int reg;
	int64_t off;
	bool is_value;
	struct debug_part parts[DEBUG_MAX_PARTS];
	unsigned int nparts;
	Dwarf_Die type;
};

/*
 * The variable @name as code at @pc sees it: its block's, its function's, its file's.  NULL, or why not.  The function is
 * the one whose code it is, or (@inlined not NULL) the copy of the function @inlined that is inside of it.
 */
const char *debug_var(struct debug *d, uint64_t pc, const char *inlined, const char *name, struct debug_var *ret);

/*
 * Where the machine's calling convention leaves a result of the type, bare, a structure: in *ret, whose base is the
 * register of results.  NULL, or why that cannot be told.  System V ABI, AMD64 supplement, 3.2.3 "Returning of
 * Values".
 */
const char *debug_struct_result(const Dwarf_Die *type, struct debug_var *ret);

/* The type of what the function whose code is at @pc returns; false: nothing, or it is not known. */
bool debug_result(struct debug *d, uint64_t pc, Dwarf_Die *type);

/* The variable @name that is in no function, of the source file @file (its end suffices) or (NULL) of any. */
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
	uint64_t size;		/* bytes, of an array an element's; 0: unknown */
	bool sign;		/* INT */
};

/* @type without typedefs and qualifiers: *bare, which may be @type, and its shape. */
void debug_shape(const Dwarf_Die *type, Dwarf_Die *bare, struct debug_shape *ret);

/* What @type, bare, points to or is an array of; false: void, or neither. */
bool debug_target(const Dwarf_Die *type, Dwarf_Die *ret);

/* Bytes of a value of the type; 0: unknown.  How many indexes the array @type, bare, takes. */
uint64_t debug_size(const Dwarf_Die *type);
unsigned int debug_dims(const Dwarf_Die *type);

/* A member of a structure; a bit field is @bits wide, from bit @bit of the number of @width bytes at @off. */
struct debug_member {
	const char *name;	/* NULL: an inner structure without a name */
	Dwarf_Die type;
	int64_t off;
	uint8_t width, bit, bits;	/* bits 0: it is no bit field */
	const char *why;	/* its place is not known: why */
};

/* Where member @name of the structure @type, bare, is.  NULL, or why not. */
const char *debug_member(const Dwarf_Die *type, const char *name, struct debug_member *ret);

/* Call @fn for each member of the structure @type, bare. */
void debug_each_member(const Dwarf_Die *type, void (*fn)(void *ctx, const struct debug_member *m), void *ctx);

/* Elements in dimension @dim of the array @type, bare; 0: unknown. */
uint64_t debug_count(const Dwarf_Die *type, unsigned int dim);

/* Is it a character's type? */
bool debug_is_char(const Dwarf_Die *type);

/* Add the type's name to @out as stap -L has it: "struct node*", "char const*". */
void debug_type_name(const Dwarf_Die *type, struct strbuf *out);

#endif
