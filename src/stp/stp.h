/*
 * The SystemTap language: from scripts to a tree with names resolved and types known.
 *
 *	stp = stp_new(arena, diag, &env);
 *	stp_add(stp, source, true);		each tapset file
 *	stp_add(stp, source, false);		the script
 *	prog = stp_check(stp, &resolver);	the handlers, functions and globals that remain
 *
 * All of it lives in the arena.  Mistakes go to the diag in stap's words; wherever one was made the function
 * returns false or NULL.  A message's text begins with "parse error: " or "semantic error: "; a hint is stap's
 * second line ("type was first inferred here ..."), or what to do instead.
 */
#ifndef DTAP_STP_STP_H
#define DTAP_STP_STP_H

#include <stdbool.h>
#include <stdint.h>

#include "stp/ast.h"
#include "stp/point.h"
#include "stp/preproc.h"

struct arena;
struct diag;
struct source;
struct stp;

enum stp_limit {
#define STP_LIMIT(name, value, what) STP_##name,
#include "stp/limits.def"
#undef STP_LIMIT
	STP_NLIMITS,
};

/* @env is copied. */
struct stp *stp_new(struct arena *a, struct diag *diag, const struct stp_env *env);

/* Read one file.  Of a library nothing needs to be used, embedded C apart all may stand in it. */
bool stp_add(struct stp *stp, const struct source *src, bool from_library);

/* -DNAME=VALUE.  False: there is no such limit. */
bool stp_set_limit(struct stp *stp, const char *name, int64_t value);
int64_t stp_get_limit(const struct stp *stp, enum stp_limit limit);

/* Expand, resolve, leave out, infer; once.  @resolver as in stp_expand. */
struct stp_prog *stp_check(struct stp *stp, const struct stp_resolver *resolver);

/* What was parsed, for -p1. */
const struct stp_prog *stp_tree(const struct stp *stp);

#endif
