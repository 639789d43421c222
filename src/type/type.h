/*
 * C types: what declarations, casts and probe arguments speak of, with sizes and offsets.
 *
 * A set of types belongs to one compilation and lives in its arena.  It starts with C's basic types and the
 * typedefs that D programs count on (int8_t ... uintptr_t, size_t, pid_t ...); declarations add to it, and
 * so may readers of DWARF and BTF.  Types are built once and then only read.  Targets are LP64: int is 4
 * bytes, long and pointers are 8, char is signed (D's rule, whatever the machine's C does).
 *
 * D's string is a type of its own, without a size here (strsize is the session's); as a member of a struct or an
 * element of an array it counts 256 bytes.  Associative arrays and
 * aggregations are kinds of identifiers, not types.
 *
 * Typedefs and qualifiers stay visible for messages; type_strip looks through both.
 */
#ifndef DTAP_TYPE_TYPE_H
#define DTAP_TYPE_TYPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct arena;
struct strbuf;

enum type_kind {
	TYPE_VOID,
	TYPE_INT,		/* integers, char and _Bool included */
	TYPE_FLOAT,		/* float, double, long double: printed, never computed with */
	TYPE_STRING,		/* D's string */
	TYPE_PTR,
	TYPE_ARRAY,
	TYPE_STRUCT,
	TYPE_UNION,
	TYPE_ENUM,		/* an int with named values */
	TYPE_FUNC,
	TYPE_TYPEDEF,
	TYPE_QUAL,		/* const, volatile, restrict of another type */
};

enum { TYPE_MAX_DEPTH = 256 };	/* declarations beyond it are refused, so recursion over types is safe */

/* USER: D's userland, of objects in the traced process. */
enum type_quals { TYPE_CONST = 1, TYPE_VOLATILE = 2, TYPE_RESTRICT = 4, TYPE_USER = 8 };

/* C's integer ranks, for the usual conversions. */
enum type_rank { RANK_BOOL, RANK_CHAR, RANK_SHORT, RANK_INT, RANK_LONG, RANK_LLONG };

/* The basic types, by number. */
enum type_basic {
	TYPE_B_VOID, TYPE_B_BOOL, TYPE_B_CHAR, TYPE_B_SCHAR, TYPE_B_UCHAR, TYPE_B_SHORT, TYPE_B_USHORT,
	TYPE_B_INT, TYPE_B_UINT, TYPE_B_LONG, TYPE_B_ULONG, TYPE_B_LLONG, TYPE_B_ULLONG,
	TYPE_B_FLOAT, TYPE_B_DOUBLE, TYPE_B_LDOUBLE, TYPE_B_STRING,
	TYPE_B_MAX
};

/* A member of a struct or union. */
struct type_member {
	const char *name;		/* NULL: an anonymous struct or union, whose members are found through it */
	const struct type *type;	/* of a bit-field: its declared type */
	uint64_t bit_off;		/* from the start of the struct; bytes * 8 but for bit-fields */
	unsigned int bits;		/* width of a bit-field; 0: none */
};

struct type_enumerator {
	const char *name;
	int64_t value;
	const struct type *type;	/* its enum */
};

struct type_source;

struct type {
	enum type_kind kind;
	const char *name;		/* basic type, tag, typedef name; NULL: none */
	uint64_t size;			/* bytes; see type_size */
	uint32_t align;			/* bytes */
	uint32_t depth;			/* pointers, arrays, functions and qualifiers on top of each other */
	bool open;			/* its members are being declared */
	bool complete;			/* false: struct, union, enum only named so far; array without a count */
	const struct type_source *source;	/* not NULL: has the members of this STRUCT or UNION, which nobody has asked for */
	uint32_t source_id;			/* the source's own */
	struct types *types;			/* whose it is, of a struct, union, enum */
	union {
		struct {
			bool sign;
			enum type_rank rank;
		} integer;		/* INT */
		struct {
			unsigned int quals;	/* QUAL: enum type_quals */
			const struct type *to;	/* PTR, TYPEDEF, QUAL; what an ARRAY has, a FUNC returns */
			uint64_t count;		/* ARRAY: elements */
			const struct type **params;	/* FUNC */
			size_t nparams;
			bool varargs;		/* FUNC: ... at the end, or no prototype: "()" */
		};
		struct {
			struct type_member *members;	/* STRUCT, UNION */
			size_t nmembers, members_cap;
			uint64_t bits;			/* laid out so far */
		};
		struct {
			struct type_enumerator **values;	/* ENUM */
			size_t nvalues, values_cap;
		};
	};
};

struct types;

struct types *types_new(struct arena *a);

/*
 * Types that nobody has declared: the kernel's, a program's.  They are made when they are first named; a structure's
 * members when they are first asked for.  Enumerators of a source are known by its types alone, not by their names.
 */
struct type_source {
	/*
	 * The struct, union, enum or (TYPE_TYPEDEF) typedef called @name in @module, NULL: wherever it is found first; made
	 * with the functions for building below.  NULL: none.
	 */
	const struct type *(*find)(const struct type_source *s, struct types *ts, const char *module, enum type_kind kind,
				   const char *name);
	/* Add the members to @t, whose size and alignment are known and stay. */
	void (*members)(const struct type_source *s, struct types *ts, struct type *t);
};

/* Ask @s, which outlives @ts, for what is not declared.  NULL: nobody. */
void types_set_source(struct types *ts, const struct type_source *s);

/* --- finding ----------------------------------------------------------------------------------------- */

const struct type *type_basic(const struct types *ts, enum type_basic b);

/* The signed or unsigned integer of @bytes 1, 2, 4 or 8: C's char, short, int, long. */
const struct type *type_int(const struct types *ts, unsigned int bytes, bool sign);

const struct type *type_find_typedef(const struct types *ts, const char *name);	/* or NULL */
struct type *type_find_tag(const struct types *ts, enum type_kind kind, const char *tag);	/* or NULL */
const struct type_enumerator *type_find_enumerator(const struct types *ts, const char *name);	/* or NULL */

/* What the source has of @kind (TYPE_TYPEDEF, or a tag's) as @name in @module (NULL: anywhere); NULL: nothing. */
const struct type *type_import(struct types *ts, const char *module, enum type_kind kind, const char *name);

/* @t, a struct or union behind type_strip, with its members there: all who look at t->members come through here. */
const struct type *type_load(const struct type *t);

/*
 * The member @name of the struct or union @t (typedefs and qualifiers looked through), also inside anonymous
 * members; *bit_off is then its offset in @t itself.  NULL: none, or @t is incomplete or something else.
 */
const struct type_member *type_find_member(const struct type *t, const char *name, uint64_t *bit_off);

/* --- asking ------------------------------------------------------------------------------------------ */

/* @t without typedefs and qualifiers at its top. */
const struct type *type_strip(const struct type *t);

/* Bytes; 0 for void, string, functions and whatever is incomplete. */
uint64_t type_size(const struct type *t);
/* The same of a member or an element: a string counts there. */
uint64_t type_stride(const struct type *t);

uint32_t type_align(const struct type *t);	/* at least 1 */
bool type_is_complete(const struct type *t);	/* has it a size, or is it string? */

/* All look through typedefs and qualifiers. */
bool type_is_void(const struct type *t);
bool type_is_user(const struct type *t);	/* a pointer to a userland object */
bool type_is_float(const struct type *t);
bool type_is_integer(const struct type *t);	/* INT or ENUM */
bool type_is_signed(const struct type *t);	/* a signed integer */
bool type_is_scalar(const struct type *t);	/* integer or pointer */
bool type_is_ptr(const struct type *t);
bool type_is_array(const struct type *t);
bool type_is_sou(const struct type *t);		/* struct or union */
bool type_is_string(const struct type *t);	/* D's string only */
bool type_has_string(const struct type *t);	/* or is one */
bool type_is_char_array(const struct type *t);
bool type_is_char_ptr(const struct type *t);

/* What a pointer points to, an array has, a function returns; NULL for the others. */
const struct type *type_target(const struct type *t);

/* The same type, qualifiers and typedef names aside (at every level). */
bool type_same(const struct type *a, const struct type *b);

/* Integer promotion; of a bit-field pass its width in @bits, else 0. */
const struct type *type_promote(const struct types *ts, const struct type *t, unsigned int bits);

/* C's usual arithmetic conversions of two integer types: what D compares in. */
const struct type *type_arith(const struct types *ts, const struct type *a, const struct type *b);

/*
 * What D computes in, as the DTraces do: the wider of two integer types, of equally wide ones that without sign.  Nothing
 * becomes an int first: an unsigned char plus a signed char is an unsigned char.
 */
const struct type *type_wider(const struct types *ts, const struct type *a, const struct type *b);

/* @t as C writes it ("const char *", "struct foo [4]"), with @name where the declared name goes (or NULL). */
void type_print(struct strbuf *out, const struct type *t, const char *name);
const char *type_text(struct arena *a, const struct type *t);

/* --- building ---------------------------------------------------------------------------------------- */

const struct type *type_ptr(struct types *ts, const struct type *to);
const struct type *type_array(struct types *ts, const struct type *of, uint64_t count, bool counted);
const struct type *type_qualify(struct types *ts, const struct type *t, unsigned int quals);

/* @params is copied. */
const struct type *type_func(struct types *ts, const struct type *ret, const struct type *const *params,
			     size_t nparams, bool varargs);

/* A new typedef, or the same again; NULL when @name is one already, of another type. */
const struct type *type_typedef(struct types *ts, const char *name, const struct type *t);

/* A new, incomplete struct, union or enum; @tag NULL: none.  The tag must be free (type_find_tag). */
struct type *type_new_tagged(struct types *ts, enum type_kind kind, const char *tag);

/*
 * Add a member to the @sou, which is open.  @bits not 0: a bit-field of that width.  0, -EEXIST for a name that
 * it has, -EINVAL for a type without a size, -E2BIG when the whole would be too large for a size, -ERANGE
 * for a bit-field wider than its type or not of integer type.
 */
int type_add_member(struct types *ts, struct type *sou, const char *name, const struct type *t, unsigned int bits);

/* "int : 0": the next bit-field starts in a new unit of @t. */
void type_break_bits(struct type *sou, const struct type *t);

/* All members are there: the size is rounded up to the alignment and the type is complete. */
void type_finish(struct type *sou);

/* For sources: a typedef, and a struct, union or enum, that no table of @ts has. */
struct type *type_alias(struct types *ts, const char *name, const struct type *t);
struct type *type_untabled(struct types *ts, enum type_kind kind, const char *tag);

/* For sources: add a member at an offset that is known, and a value.  @name NULL: an anonymous member. */
void type_put_member(struct types *ts, struct type *sou, const char *name, const struct type *t, uint64_t bit_off,
		     unsigned int bits);
void type_put_enumerator(struct types *ts, struct type *en, const char *name, int64_t value);

/* Add a named value to an enum; complete after the last one with type_finish.  -EEXIST: the name is taken. */
int type_add_enumerator(struct types *ts, struct type *en, const char *name, int64_t value);

#endif
