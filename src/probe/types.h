/*
 * C types from a program's debug information, made in the tables of a compilation when they are first named.
 */
#ifndef DTAP_PROBE_TYPES_H
#define DTAP_PROBE_TYPES_H

#include "type/type.h"

struct arena;
struct program_types;

/* Those of the program @path; when it cannot be read, none.  They live in @a, but for what program_types_close closes. */
struct program_types *program_types_new(struct arena *a, const char *path);
void program_types_close(struct program_types *p);	/* accepts NULL */

/* As type_source's find. */
const struct type *program_types_find(struct program_types *p, struct types *ts, enum type_kind kind, const char *name);

#endif
