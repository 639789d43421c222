/*
 * stap's listings: -l, -L, the --dump options, and the output after passes 1 and 2.  Each is appended to @out.
 */
#ifndef DTAP_LIB_STP_LIST_H
#define DTAP_LIB_STP_LIST_H

#include <stdbool.h>

#include "stp/ast.h"

struct points;
struct stp;
struct strbuf;

/*
 * -l and -L (@vars): the aliases, or else the existing points, that match the script's first probe that is no alias.
 * Returns how many.
 */
unsigned int stp_list_points(struct strbuf *out, struct stp *stp, struct points *points, bool vars);

/* --dump-probe-types, --dump-probe-aliases, --dump-functions: sorted by name. */
void stp_list_types(struct strbuf *out);
void stp_list_aliases(struct strbuf *out, const struct stp_prog *prog);
void stp_list_functions(struct strbuf *out, const struct stp_prog *prog, bool all);

/* After passes 1 and 2. */
void stp_list_tree(struct strbuf *out, const struct stp_prog *prog, const char *name);
void stp_list_checked(struct strbuf *out, const struct stp_prog *prog);

#endif
