/*
 * The SystemTap language: from scripts to a tree with names resolved and types known.
 *
 *	stp = stp_new(arena, diag, &env);
 *	stp_add(stp, source, true);		each tapset file
 *	stp_add(stp, source, false);		the script
 *	prog = stp_check(stp, &resolver);	the handlers, functions and globals that remain
 *	code = stp_compile(stp, prog);		the same as IR
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
struct ir_agg;
struct ir_clause;
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

/* Read one file.  Of a library nothing needs to be used, embedded C apart all may stand in it. */
bool stp_add(struct stp *stp, const struct source *src, bool from_library);

/* The same for a library's file, without the functions and aliases ("a.b.c") that are @hidden by others. */
bool stp_add_library(struct stp *stp, const struct source *src,
		     bool (*hidden)(void *ctx, const char *name, bool alias), void *ctx);

/* Whose functions and aliases a message may suggest besides those that were added. */
void stp_suggest(struct stp *stp, struct stp_tapset *tapset);

/* -DNAME=VALUE.  False: it must be from *low to *high.  A name that is no limit is for a module's C code, and ignored. */
bool stp_set_limit(struct stp *stp, const char *name, int64_t value, int64_t *low, int64_t *high);
int64_t stp_get_limit(const struct stp *stp, enum stp_limit limit);

/* Expand, resolve, leave out, infer; once.  @resolver as in stp_expand. */
struct stp_prog *stp_check(struct stp *stp, const struct stp_resolver *resolver);

/*
 * A clause of the program: a handler.  Its code begins with its conditions, and ends at once if one is false.
 * The session sets the clause's probe descriptions from the handler's point.
 */
struct stp_clause {
	struct ir_clause *code;
	const struct stp_handler *handler;	/* NULL: made by dtap, as @kind says */
	enum stp_point_kind kind;
	/*
	 * BEGIN END ERROR: they run in ascending order, equal ones in the order of this array.  The first BEGIN may
	 * be one of dtap, without a handler, that gives globals their initial values.
	 */
	int64_t order;
	const char *pp;				/* the point as text, what pp() says */
};

/*
 * What an error says: "division by 0 near operator '/' at FILE:3:7", by the number of its place (IR_ACT_ERROR).
 * With @what empty nothing is behind the message, which is @text with the fault's value, or without one the words
 * of faults.def.
 */
struct stp_near {
	const char *what, *text;
	struct src_pos pos;
};

/* How long handlers took, in ns, by the number of the clause: the aggregations of stp_env.timing. */
enum { STP_TIME_MIN, STP_TIME_MAX, STP_TIME_ALL /* count, sum, squares */, STP_TIMES };

struct stp_code {
	struct ir_prog *prog;
	struct stp_clause *clauses;	/* prog->nclauses, the same order */
	struct stp_near *nears;
	uint32_t nnears;
	struct ir_agg *times[STP_TIMES];	/* NULL: nothing is measured */
};

/* The program as IR, once.  NULL: something cannot be carried out, reported. */
struct stp_code *stp_compile(struct stp *stp, struct stp_prog *prog);

/* What was parsed, for -p1. */
const struct stp_prog *stp_tree(const struct stp *stp);

/* The same, for stp_expand alone: a list of points needs no more. */
struct stp_prog *stp_parsed(struct stp *stp);

/*
 * Give the handlers that stp_expand made of it their local variables, with types as far as they can be known: for a list.
 * Nothing is left out, and mistakes are not reported.  Once.
 */
void stp_find_locals(struct stp *stp, const struct stp_resolver *resolver);

#endif
