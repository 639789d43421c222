/*
 * From a variable of C to what a script asks of it: members, elements, the value at the end.  points_debug.c walks,
 * points_pretty.c prints what was walked to.
 */
#ifndef DTAP_PROBE_POINTS_WALK_H
#define DTAP_PROBE_POINTS_WALK_H

#include "elf/debug.h"
#include "probe/points_priv.h"

enum { WALK_MAX_ITEMS = 32 };	/* values of one format */

struct walk {
	struct points *p;
	struct points_file *file;	/* whose types they are */
	struct stp_source *source;
	Dwarf_Die type;
	int64_t off;		/* not yet a step */
	bool in_memory;		/* the value is at the address had so far */
	unsigned int nparts;	/* or @off bytes into these parts, in registers */
	struct debug_part parts[DEBUG_MAX_PARTS];
	uint32_t operands[DEBUG_MAX_PARTS];	/* the probe's that they are */
	unsigned int dim;	/* @type is an array: indexes that it had so far */
	struct debug_member bits;	/* it is a bit field */
	const char *why;
};

/* The operand of the only site of @f's probe that @text is, a number of 8 bytes. */
bool walk_operand(struct walk *w, const struct points_found *f, const char *text);

/* Begin at the variable @v of the point @f.  False, here and below: w->why says why. */
bool walk_begin(struct walk *w, const struct points_found *f, const struct debug_var *v);

/* The value, a pointer of the type @bare, becomes the address. */
bool walk_deref(struct walk *w, const Dwarf_Die *bare);

/* To member @m; @n times @size bytes further. */
void walk_to(struct walk *w, const struct debug_member *m);
void walk_move(struct walk *w, int64_t n, int64_t size);

/* Elements of one element of the array @bare at its dimension @dim: those that the indexes behind tell apart. */
uint64_t walk_inner_count(const Dwarf_Die *bare, unsigned int dim);

/* The value at the end, or (@target has &) its address. */
bool walk_fetch(struct walk *w, const struct stp_node *target);

/* All of what was walked to as text; @levels of $ open it. */
bool walk_print(struct walk *w, unsigned int levels);

/* $$parms$ and its like. */
bool points_list_pretty(struct points *p, const struct points_found *f, bool parms, bool locals, unsigned int levels,
			struct stp_source *source);

#endif
