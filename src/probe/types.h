/*
 * C types from a program's debug information, created in a compilation's tables when first used.
 */
#ifndef DTAP_PROBE_TYPES_H
#define DTAP_PROBE_TYPES_H

#include "type/type.h"

struct arena;
struct program_types;

/* The types of the program @path; none if it cannot be read.  They are in @a; program_types_close closes the file. */
struct program_types *program_types_new(struct arena *a, const char *path);
void program_types_close(struct program_types *p);	/* accepts NULL */

/* As type_source's find. */
const struct type *program_types_find(struct program_types *p, struct types *ts, enum type_kind kind, const char *name);

#endif
