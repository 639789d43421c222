/*
 * stap's lists: -l, -L and the --dump options.
 */
#ifndef DTAP_CMD_STAP_LIST_H
#define DTAP_CMD_STAP_LIST_H

#include <stdbool.h>

#include "stp/ast.h"

struct points;
struct stp;

/*
 * -l and -L (@vars): the aliases, or the points that exist, which the program's probe, the first that is no alias, stands
 * for.  Returns how many.
 */
unsigned int stap_list_points(struct stp *stp, struct points *points, bool vars);

/* --dump-probe-types, --dump-probe-aliases, --dump-functions: in order of names. */
void stap_dump_types(void);
void stap_dump_aliases(const struct stp_prog *prog);
void stap_dump_functions(const struct stp_prog *prog);

/* What stap prints after passes 1 and 2. */
void stap_dump_tree(const struct stp_prog *prog, const char *name);
void stap_dump_checked(const struct stp_prog *prog);

#endif
