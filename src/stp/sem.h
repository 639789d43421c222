/*
 * Semantic analysis: the meaning of names, elimination of code without effect, and types of expressions.
 *
 *	sem_symbols	names become variables and functions; context variables are asked of the resolver
 *	sem_elide	code that has no effect is left out, before anybody looks at its types
 *	sem_infer	types, over the whole program at once
 *	sem_autocast	-> behind values that context variables or casts gave a type
 *	sem_loops	what loops allow and forbid
 *	sem_places	where stacks and names of addresses may be used
 *
 * SystemTap's rules: the order of declarations does not matter; a name that is neither a global nor a parameter is a
 * local of its function or handler; a variable has one type, inferred from any of its uses; eliminated code may be
 * wrong.
 */
#ifndef DTAP_STP_SEM_H
#define DTAP_STP_SEM_H

#include <stdbool.h>

#include "stp/ast.h"
#include "stp/point.h"

struct diag;

enum { STP_MAX_PARAMS = 6 };

struct lower;

/*
 * How a function is implemented: by a builtin or a runtime function of the IR, several instructions, a number that is
 * printed as a name (enum ir_show), or not at all.
 */
enum stp_by { STP_BY_NONE, STP_BY_BUILTIN, STP_BY_RUNTIME, STP_BY_CODE, STP_BY_SHOW };

/* A row of functions.def. */
struct stp_builtin {
	const char *name;
	enum stp_type result;		/* STP_UNKNOWN: none */
	unsigned int nparams;
	enum stp_type params[STP_MAX_PARAMS];
	bool pure;
	enum stp_by how;
	unsigned int number;		/* enum ir_builtin, ir_fn or ir_show; CODE: the parameter in functions.def */
	uint32_t (*lower)(struct lower *l, struct stp_node *call, const uint32_t *args);	/* of ir_reg (lower.h) */
	bool parts;			/* registers are not preserved */
	const char *instead;		/* not available: what to use instead; or NULL */
	bool guru;			/* may be named only with -g */
};

const struct stp_builtin *stp_find_builtin(const char *name, size_t nparams);

/* The name of function @i, or NULL after the last. */
const char *stp_builtin_name(size_t i);

struct sem {
	struct arena *arena;
	struct diag *diag;
	struct stp_prog *prog;
	const struct stp_resolver *resolver;
	bool guru;			/* writing to the traced program is allowed */

	struct stp_handler *handler;	/* the current handler or function; the other one is NULL */
	struct stp_func *func;
	struct stp_handler *context;	/* sem_symbols: the handler, also in its copies of functions; or NULL */
	bool in_cond;			/* in a probe's condition */
	bool any_arity;			/* sem_symbols: in delete NAME, of a scalar or a whole array */
	bool final;			/* sem_infer: report what is still unknown */
	unsigned int searches;		/* sem_loops: numbers them */
	unsigned int news;		/* sem_infer, sem_elide: number of changes in this round */
};

/* Each of these returns false when it reported mistakes. */
bool sem_symbols(struct sem *s);
bool sem_elide(struct sem *s);
bool sem_infer(struct sem *s);
bool sem_autocast(struct sem *s);
bool sem_loops(struct sem *s);
bool sem_places(struct sem *s);

/* Append handlers that print the globals which are written and never read. */
void sem_display(struct stp_prog *p);

/*
 * Append handlers of STP_P_READ, which print the script's own globals that are written: for each value, and each element of
 * an array, "NAME KIND", with a blank, and the keys and values.  KIND is
 *
 *	counter		the value, which the script only adds to
 *	gauge		the value
 *	stat		count and sum
 *	hist		the same; the histogram follows
 *
 * Texts are no values.
 */
void sem_readings(struct stp_prog *p);

/* Warn of variables that are read and never assigned.  Between sem_symbols and sem_elide. */
void sem_warn_unassigned(struct sem *s);

/* "identifier 'x' at FILE:LINE:COL". */
const char *sem_position(struct sem *s, const char *what, struct src_pos pos);

/* Report "semantic error: WHAT: the token of @n". */
void sem_error(struct sem *s, const struct stp_node *n, const char *tag, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));

#endif
