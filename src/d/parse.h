/*
 * From D text to the tree of ast.h.
 *
 *	p = d_prog_new(arena, diag, &macros);
 *	d_parse(p, src, D_SPEC_FILE);		for each -s and -n, in order
 *	d_parse_end(p);
 *	if (!diag->errors) check ...
 *
 * Mistakes go to the diag, with DTrace's tag where it has one (D_SYNTAX, D_MACRO_UNDEF ...); parsing continues behind
 * them.  After errors the tree is incomplete and must not be checked.  Any bytes are safe to parse: nesting is
 * limited, and a NUL or a control byte is an error with its position.
 */
#ifndef DTAP_D_PARSE_H
#define DTAP_D_PARSE_H

#include <stdbool.h>
#include <stdint.h>

#include "d/ast.h"

struct diag;

/* The values of $1, $$1, $target ...  All strings outlive the program. */
struct d_macros {
	const char *const *argv;	/* [0] is $0: the script's name; NULL when argc is 0 */
	unsigned int argc;
	int64_t target;			/* $target; 0: none */
	int64_t pid, ppid, pgid, sid, uid, euid, gid, egid;
	bool defaultargs;		/* a missing argument is 0 or "", $target 0; also set by #pragma D option defaultargs */
	bool argref;			/* an unused argument is no mistake; also set by a #pragma */
};

/* Fill the ids of this process; the rest is zeroed. */
void d_macros_init(struct d_macros *m);

/*
 * How a source names its probes.  In a file, and with -n, "a:b" is function a, name b; with -f it is module a,
 * function b; -m: provider a, module b; -P: only a provider.  In a file a clause must have a predicate or a body;
 * elsewhere the description suffices.
 */
enum d_spec { D_SPEC_FILE, D_SPEC_NAME, D_SPEC_FUNC, D_SPEC_MOD, D_SPEC_PROV };

/* Create a program without items; @m is copied.  Reports go to @diag, which outlives the program. */
struct d_prog *d_prog_new(struct arena *a, struct diag *diag, const struct d_macros *m);

/* Parse @src and add its items.  False: there were errors in it. */
bool d_parse(struct d_prog *p, const struct source *src, enum d_spec spec);

/* All sources are parsed: report unused macro arguments (D_MACRO_UNUSED), an error as in dtrace(1). */
bool d_parse_end(struct d_prog *p);

/* The C type written in @text ("const char *", "struct foo"), or NULL, which is not reported. */
const struct type *d_parse_type(struct d_prog *p, const char *text);

/* Is it the name of a variable that every script has (globals.def)?  check_name.c has the table. */
bool d_is_builtin(const char *name);

/* The value of a constant integer expression (enumerators, sizeof and scalar inlines allowed), or false. */
bool d_const(const struct d_prog *p, const struct d_node *n, int64_t *ret);
/* The same, with the value's type in *type. */
bool const_value(const struct d_prog *p, const struct d_node *n, uint64_t *value, const struct type **type);

#endif
