/*
 * Stability: how much a script depends on interfaces that may change.  -v prints it, -x amin limits it.
 *
 * Every interface has three attributes; those of a description or an expression are the lowest of all that it uses.
 * Attributes belong to names, as scripts write them: to built-in names, to the script's own, and to those in a
 * #pragma D attributes.
 *
 * Guide: "Stability".
 */
#ifndef DTAP_D_ATTR_H
#define DTAP_D_ATTR_H

#include <stdbool.h>
#include <stdint.h>

#include "d/ast.h"

struct diag;
struct probe_desc;
struct source;
struct strbuf;

enum d_stability { STAB_INTERNAL, STAB_PRIVATE, STAB_OBSOLETE, STAB_EXTERNAL, STAB_UNSTABLE, STAB_EVOLVING, STAB_STABLE,
		   STAB_STANDARD };
enum d_class { CLASS_UNKNOWN, CLASS_CPU, CLASS_PLATFORM, CLASS_GROUP, CLASS_ISA, CLASS_COMMON };

struct d_attr {
	uint8_t name, data;	/* enum d_stability */
	uint8_t class;		/* enum d_class */
};

/* Parse "Evolving/Stable/Common"; case matters.  False: it is not valid. */
bool attr_parse(const char *text, struct d_attr *ret);

const char *attr_stability(uint8_t stability);
const char *attr_class(uint8_t class);

/* The lowest attributes of the descriptions and of the statements of @src's clauses. */
struct d_attrs {
	struct d_attr descs, stmts;
};
struct d_attrs attr_of(const struct d_prog *prog, const struct source *src);

/* The attributes of the probe that @desc, with all four parts, names, and of its arguments. */
struct d_attr attr_of_probe(const struct probe_desc *desc, struct d_attr *args);

/* Append the three lines about @a that -v prints. */
void attr_put(struct strbuf *out, struct d_attr a);

/* Report, as D_ATTR_MIN, the first name in each clause with attributes below @min.  False: there was one. */
bool attr_enforce(const struct d_prog *prog, const struct d_attr *min, struct diag *diag);

#endif
