/*
 * From D text to the tree of ast.h.
 *
 *	p = d_prog_new(arena, diag, &macros);
 *	d_parse(p, src, D_SPEC_FILE);		for each -s and -n, in order
 *	d_parse_end(p);
 *	if (!diag->errors) check ...
 *
 * Mistakes go to the diag, tagged as in DTrace where it has a tag (D_SYNTAX, D_MACRO_UNDEF ...); parsing goes
 * on behind them.  With errors the tree holds what was understood and must not be checked.  Any bytes are
 * safe to parse: nesting is bounded, and a NUL or a control byte is a located error.
 */
#ifndef DTAP_D_PARSE_H
#define DTAP_D_PARSE_H

#include <stdbool.h>
#include <stdint.h>

#include "d/ast.h"

struct diag;

/* What $1, $$1, $target ... stand for.  All strings outlive the program. */
struct d_macros {
	const char *const *argv;	/* [0] is $0: the script's name; NULL when argc is 0 */
	unsigned int argc;
	int64_t target;			/* $target; 0: there is none */
	int64_t pid, ppid, pgid, sid, uid, euid, gid, egid;
	bool defaultargs;		/* an argument not given is 0 or ""; also #pragma D option defaultargs */
	bool argref;			/* an argument that no script reads is no mistake; also as a #pragma */
};

/* Fill the ids of this process; the rest is zeroed. */
void d_macros_init(struct d_macros *m);

/*
 * How a source names its probes.  In a file, and behind -n, "a:b" is function a, name b; behind -f it is
 * module a, function b; -m: provider a, module b; -P: provider alone.  In a file a clause must have a
 * predicate or a body; elsewhere the description alone will do.
 */
enum d_spec { D_SPEC_FILE, D_SPEC_NAME, D_SPEC_FUNC, D_SPEC_MOD, D_SPEC_PROV };

/* A program without items; @m is copied.  Reports go to @diag, which outlives the program. */
struct d_prog *d_prog_new(struct arena *a, struct diag *diag, const struct d_macros *m);

/* Add what @src says.  False: there were errors in it. */
bool d_parse(struct d_prog *p, const struct source *src, enum d_spec spec);

/*
 * All sources are in: report macro arguments given and never used (D_MACRO_UNUSED), which is an error as
 * in dtrace(1).
 */
bool d_parse_end(struct d_prog *p);

/* The C type written in @text ("const char *", "struct foo"), or NULL: no report is made. */
const struct type *d_parse_type(struct d_prog *p, const char *text);

/* The value of a constant integer expression (enumerators, sizeof and scalar inlines allowed), or false. */
bool d_const(const struct d_prog *p, const struct d_node *n, int64_t *ret);

#endif
