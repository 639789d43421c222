/*
 * From a C variable to the member or element that a script names.  points_debug.c walks, points_pretty.c
 * pretty-prints the result.
 */
#ifndef DTAP_PROBE_POINTS_WALK_H
#define DTAP_PROBE_POINTS_WALK_H

#include "elf/debug.h"
#include "probe/points_priv.h"

enum { WALK_MAX_ITEMS = 32 };	/* values of one format */

struct walk {
	struct points *p;
	struct points_file *file;	/* the file with the types */
	struct stp_source *source;
	Dwarf_Die type;
	int64_t off;		/* not yet a step */
	bool in_memory;		/* the value is in memory, at the current address */
	unsigned int nparts;	/* or it is in registers: @off bytes into these parts */
	struct debug_part parts[DEBUG_MAX_PARTS];
	uint32_t operands[DEBUG_MAX_PARTS];	/* their operands of the probe */
	unsigned int dim;	/* @type is an array: number of indexes applied so far */
	struct debug_member bits;	/* it is a bit field */
	const char *why;
};

/* The operand @text, a number of 8 bytes, of the only site of @f's probe. */
bool walk_operand(struct walk *w, const struct points_found *f, const char *text);

/* Begin at the variable @v of the point @f.  False, here and below: w->why has the reason. */
bool walk_begin(struct walk *w, const struct points_found *f, const struct debug_var *v);

/* Make the value, a pointer of type @bare, the current address. */
bool walk_deref(struct walk *w, const Dwarf_Die *bare);

/* Step to member @m; move by @n times @size bytes. */
void walk_to(struct walk *w, const struct debug_member *m);
void walk_move(struct walk *w, int64_t n, int64_t size);

/* The number of innermost elements in one element of dimension @dim of the array @bare. */
uint64_t walk_inner_count(const Dwarf_Die *bare, unsigned int dim);

/* Load the value at the end or, if @target has &, its address. */
bool walk_fetch(struct walk *w, const struct stp_node *target);

/* The value at the end as text; @levels: the number of $. */
bool walk_print(struct walk *w, unsigned int levels);

/* $$parms$, $$vars$ and $$locals$. */
bool points_list_pretty(struct points *p, const struct points_found *f, bool parms, bool locals, unsigned int levels,
			struct stp_source *source);

#endif
