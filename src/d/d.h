/*
 * The D language: from scripts to IR.
 *
 *	d = d_new(arena, diag, &macros);
 *	d_add(d, source, D_SPEC_FILE);		for each script, in order
 *	d_end(d);				nothing more comes
 *	d_option(d, i), d_descs(d, &n)		what the scripts set, and which probes they want
 *	prog = d_compile(d, &resolver, &opts);
 *
 * All of it lives in the arena.  Mistakes go to the diag, with DTrace's tags and words; wherever one was
 * made the function returns false or NULL.  d/parse.h says what macros and specs are.
 */
#ifndef DTAP_D_D_H
#define DTAP_D_D_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "d/parse.h"

struct arena;
struct diag;
struct ir_prog;
struct resolver;
struct source;

struct d_opts {
	uint32_t strsize;	/* bytes of a string with its NUL, brought to what the IR can have; 0: 256 */
	uint32_t stackframes, ustackframes, jstackframes;	/* frames that stack(), ustack(), jstack() show; 0: 20, 100, 50 */
	uint32_t nspec;		/* speculations at a time */
	const struct d_attr *amin;	/* what the scripts use must not have less (d/attr.h); NULL: no matter */
	bool destructive;	/* -w */
	bool zdefs;		/* descriptions that match no probe are no mistake (-Z) */
};

struct d;
struct d_libs;
struct type_source;

/* @m: the script's arguments and macro variables; it must outlive the compilation. */
struct d *d_new(struct arena *a, struct diag *diag, const struct d_macros *m);

/* Before d_add: the types that scripts may use without declaring them, and the libraries (d/lib.h).  NULL: none. */
void d_use(struct d *d, const struct type_source *types, struct d_libs *libs);

/* Parse one more script, and then: there are no more. */
bool d_add(struct d *d, const struct source *src, enum d_spec spec);
bool d_end(struct d *d);

/* The @i-th #pragma D option, in the script's order; NULL behind the last.  Names and values are not checked. */
const struct d_pragma *d_option(const struct d *d, size_t i);

/* The probe descriptions of all clauses in their order: *n of them, in an array in the arena. */
const struct probe_desc *d_descs(struct d *d, size_t *n);

/* Number of clauses. */
size_t d_nclauses(const struct d *d);

/*
 * Check and lower, once.  @resolver is asked about each description.  The program's clauses are the
 * script's, in order.
 */
struct ir_prog *d_compile(struct d *d, const struct resolver *resolver, const struct d_opts *opts);

/* The parsed program, for dumps. */
const struct d_prog *d_tree(const struct d *d);

#endif
