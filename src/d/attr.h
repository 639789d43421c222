/*
 * Stability: how much a script rests on what may change, told by -v and bounded by -x amin.
 *
 * Every interface has three attributes; those of a description or an expression are the lowest of what it uses.  This
 * goes by the names alone, as the scripts have them: a name is the built-in one, the script's, or what a #pragma D
 * attributes has said of it.
 *
 * Guide: "Stability".
 */
#ifndef DTAP_D_ATTR_H
#define DTAP_D_ATTR_H

#include <stdbool.h>
#include <stdint.h>

#include "d/ast.h"

struct diag;
struct source;

enum d_stability { STAB_INTERNAL, STAB_PRIVATE, STAB_OBSOLETE, STAB_EXTERNAL, STAB_UNSTABLE, STAB_EVOLVING, STAB_STABLE,
		   STAB_STANDARD };
enum d_class { CLASS_UNKNOWN, CLASS_CPU, CLASS_PLATFORM, CLASS_GROUP, CLASS_ISA, CLASS_COMMON };

struct d_attr {
	uint8_t name, data;	/* enum d_stability */
	uint8_t class;		/* enum d_class */
};

/* "Evolving/Stable/Common", case as shown. False: it is none. */
bool attr_parse(const char *text, struct d_attr *ret);

const char *attr_stability(uint8_t stability);
const char *attr_class(uint8_t class);

/* The lowest attributes of the descriptions and of the statements of @src's clauses. */
struct d_attrs {
	struct d_attr descs, stmts;
};
struct d_attrs attr_of(const struct d_prog *prog, const struct source *src);

/* Report, as D_ATTR_MIN, the first thing in each clause that has less than @min.  False: there was one. */
bool attr_enforce(const struct d_prog *prog, const struct d_attr *min, struct diag *diag);

#endif
