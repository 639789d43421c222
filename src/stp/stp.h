/*
 * The SystemTap language: from scripts to a tree with names resolved and types known.
 *
 *	stp = stp_new(arena, diag, &env);
 *	stp_add(stp, source, true);		each tapset file
 *	stp_add(stp, source, false);		the script
 *	prog = stp_check(stp, &resolver);	the handlers, functions and globals that remain
 *	code = stp_compile(stp, prog);		the same as IR
 *
 * All of it lives in the arena.  Mistakes go to the diag in stap's words; the function then returns false or NULL.  A
 * message's text begins with "parse error: " or "semantic error: "; a hint is stap's second line ("type was first
 * inferred here ..."), or what to do instead.
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
struct ir_agg;
struct ir_clause;
struct ir_near;
struct ir_prog;
struct source;
struct stp;
struct stp_tapset;

enum stp_limit {
#define STP_LIMIT(name, ...) STP_##name,
#include "stp/limits.def"
#undef STP_LIMIT
	STP_NLIMITS,
};

/* @env is copied. */
struct stp *stp_new(struct arena *a, struct diag *diag, const struct stp_env *env);

/* The environment given to stp_new. */
const struct stp_env *stp_env_of(const struct stp *stp);

/* Parse one file.  A library may have declarations that are not used, and all but embedded C. */
bool stp_add(struct stp *stp, const struct source *src, bool from_library);

/* The same for a library's file, without the functions and aliases ("a.b.c") for which @hidden returns true. */
bool stp_add_library(struct stp *stp, const struct source *src,
		     bool (*hidden)(void *ctx, const char *name, bool alias), void *ctx);

/* Let messages suggest @tapset's functions and aliases, too. */
void stp_suggest(struct stp *stp, struct stp_tapset *tapset);

/*
 * -DNAME=VALUE.  False: it must be from *low to *high.  Unknown names are ignored: SystemTap passes them to C code.
 */
bool stp_set_limit(struct stp *stp, const char *name, int64_t value, int64_t *low, int64_t *high);
int64_t stp_get_limit(const struct stp *stp, enum stp_limit limit);

/* Has the user said what it is? */
bool stp_limit_is_given(const struct stp *stp, enum stp_limit limit);


/* Is the language's version (stp_env.systemtap_v) older than @version? */
bool stp_is_older(const struct stp *stp, const char *version);

/* Expand points, resolve names, eliminate code, infer types; once.  @resolver as in stp_expand. */
struct stp_prog *stp_check(struct stp *stp, const struct stp_resolver *resolver);

/*
 * A handler as a clause of the program.  Its code tests its conditions first, and ends if one is false.  The session
 * sets the clause's probe descriptions from the handler's point.
 */
struct stp_clause {
	struct ir_clause *code;
	const struct stp_handler *handler;	/* NULL: made by dtap, as @kind says */
	enum stp_point_kind kind;
	/*
	 * BEGIN END ERROR: run in ascending order, equal ones in the order of this array.  The first BEGIN may have
	 * no handler: dtap's, which gives globals their initial values.
	 */
	int64_t order;
	const char *pp;				/* the point as text, pp()'s value */
};

/* The aggregations of stp_env.timing: the duration of handlers in ns, by the number of the clause. */
enum { STP_TIME_MIN, STP_TIME_MAX, STP_TIME_ALL /* count, sum, squares */, STP_TIMES };

struct stp_code {
	struct ir_prog *prog;
	struct stp_clause *clauses;	/* as many as prog->nclauses, in the same order */
	struct ir_near *nears;
	uint32_t nnears;
	struct ir_agg *times[STP_TIMES];	/* NULL: not measured */
};

/* Lower the program to IR, once.  NULL: something is not supported (reported). */
struct stp_code *stp_compile(struct stp *stp, struct stp_prog *prog);

/* The parsed tree, for -p1. */
const struct stp_prog *stp_tree(const struct stp *stp);

/* The same, for stp_expand only: enough for a list of points. */
struct stp_prog *stp_parsed(struct stp *stp);

/*
 * Find the local variables of the handlers made by stp_expand, with their types as far as known, for a list.  Nothing
 * is eliminated, and mistakes are not reported.  Once.
 */
void stp_find_locals(struct stp *stp, const struct stp_resolver *resolver);

#endif
