/*
 * What the names of a script stand for, which of its code matters, and the types of its expressions.
 *
 *	sem_symbols	names become variables and functions; context variables are asked of the resolver
 *	sem_elide	code that has no effect is left out, before anybody looks at its types
 *	sem_infer	types, over the whole program at once
 *	sem_autocast	-> behind values that context variables or casts gave a type
 *	sem_loops	what loops allow and forbid
 *
 * SystemTap's rules: the order of declarations does not matter; a name that is no global and no parameter is
 * a local of its function or handler; a variable has one type, found from any of its uses; code that is left
 * out may be wrong.
 */
#ifndef DTAP_STP_SEM_H
#define DTAP_STP_SEM_H

#include <stdbool.h>

#include "stp/ast.h"
#include "stp/point.h"

struct diag;

enum { STP_MAX_PARAMS = 6 };

struct low;

/*
 * What a function becomes: a builtin or a runtime function of the IR, several instructions, a number that has a name
 * when it is printed (enum ir_show), or it is not there.
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
	unsigned int number;		/* enum ir_builtin, ir_fn or ir_show; of CODE as functions.def says */
	uint32_t (*lower)(struct low *l, struct stp_node *call, const uint32_t *args);	/* of ir_reg (lower.h) */
	bool parts;			/* registers do not outlive it */
	const char *instead;		/* what to use where there is none, or NULL */
};

const struct stp_builtin *stp_find_builtin(const char *name, size_t nparams);

/* The name of the i-th, or NULL behind the last. */
const char *stp_builtin_name(size_t i);

struct sem {
	struct arena *arena;
	struct diag *diag;
	struct stp_prog *prog;
	const struct stp_resolver *resolver;
	bool guru;			/* what is traced may be written to */

	struct stp_handler *handler;	/* what is being looked at; one of them is NULL */
	struct stp_func *func;
	bool in_cond;			/* in a probe's condition */
	bool final;			/* sem_infer: report what is still unknown */
	unsigned int searches;		/* sem_loops: numbers them */
	unsigned int news;		/* sem_infer, sem_elide: things found out in this round */
};

/* Each of these returns false when it reported mistakes. */
bool sem_symbols(struct sem *s);
bool sem_elide(struct sem *s);
bool sem_infer(struct sem *s);
bool sem_autocast(struct sem *s);
bool sem_loops(struct sem *s);

/* Make handlers that show the globals which are written and never read.  Behind the others. */
void sem_display(struct stp_prog *p);

/* Warn of variables that are read and never assigned.  Between sem_symbols and sem_elide. */
void sem_warn_unassigned(struct sem *s);

/* "identifier 'x' at FILE:LINE:COL". */
const char *sem_place(struct sem *s, const char *what, struct src_pos pos);

/* Report "semantic error: WHAT: the token of @n". */
void sem_error(struct sem *s, const struct stp_node *n, const char *tag, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));

#endif
