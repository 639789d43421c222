/*
 * The checker: gives every expression of a parsed script its type and every name its meaning, and finds what
 * is wrong with them.  lower.h turns what passed into IR.
 *
 * The rules are those of the DTrace guide ("Types, Operators, and Expressions", "Variables", "Pointers and
 * Arrays", "Strings"), which are C's, and on top of them:
 *  - Strings are a type of their own; == != < <= > >= compare their text.
 *  - A variable that is not declared gets the type of the first thing assigned to it, in the script's
 *    order; ++ and -- make it an int64_t.  An associative array's keys are typed by their first use.
 *  - 0 stands for "no string" wherever a pointer might.
 *  - Memory is read through pointers, and written where it is the clause's own.  Addresses are the kernel's
 *    (copyin() gives such); what args[] gives are addresses of the traced process, which is never written to,
 *    and a node knows that of itself (user).
 *
 * A mistake is reported where it is; the node then has no type, and what is built on it keeps silent.
 *
 * Files: check.c declarations and clauses, check_name.c names and variables, check_expr.c operators,
 * check_call.c functions and their prototypes, check_act.c actions and formats, check_agg.c aggregations,
 * check_type.c compares types, check_xlate.c translators.
 */
#ifndef DTAP_D_CHECK_H
#define DTAP_D_CHECK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "d/ast.h"
#include "d/d.h"
#include "ir/ir.h"
#include "lang/desc.h"
#include "lang/diag.h"
#include "type/type.h"

struct lower;
struct fmt;

/* --- names ------------------------------------------------------------------------------------------- */

enum d_ident_kind {
	ID_SCALAR,
	ID_ARRAY,		/* associative */
	ID_AGG,
	ID_INLINE,
	ID_PARAM,		/* of an inline */
	ID_BUILTIN,		/* a row of globals.def */
	ID_SUBR,		/* subrs.def */
	ID_ACTION,		/* actions.def */
	ID_AGGFUNC,		/* aggfuncs.def */
};

enum ident_space { SPACE_GLOBAL, SPACE_SELF, SPACE_THIS, SPACE_AGG, SPACE_FUNC, SPACE_MAX };

enum { PROTO_MAX = 8 };

/* A function's prototype; a type of NULL takes anything. */
struct proto {
	const struct type *result;
	const struct type *args[PROTO_MAX];
	unsigned int nargs, required;	/* named arguments, and how many of them must be there */
	bool varargs;			/* more of any type may follow */
};

struct d_ident {
	enum d_ident_kind kind;
	enum ident_space space;
	const char *name;
	struct src_pos pos;		/* where it was first seen */
	const struct type *type;	/* of the value; NULL: nothing was assigned yet */
	bool declared;
	bool user;			/* SCALAR, ARRAY: holds addresses of the traced process */

	const struct type **keys;	/* ARRAY, AGG: the signature */
	size_t nkeys;
	bool keyed;			/* ARRAY, AGG: the signature is known */

	const struct aggfunc *fn;	/* AGG: NULL until one was assigned */
	int64_t param[4];		/* AGG: as in struct ir_agg */
	bool sign;			/* AGG: of the first value */

	struct d_inline *inl;		/* INLINE */
	struct d_ident **params;	/* INLINE */
	struct d_node *arg;		/* PARAM: what it stands for while its inline is lowered */

	const struct builtin *builtin;
	const struct subr *subr;
	const struct action *action;
	const struct aggfunc *aggfunc;
	const struct proto *proto;	/* SUBR, ACTION, AGGFUNC */

	struct ir_var *var;		/* SCALAR: made by the lowering when first needed; the next two as well */
	struct ir_map *map;
	struct ir_agg *agg;
	struct ir_map *strings;		/* of an object (lower_obj.c): its strings, or its words */
	struct ir_var **words;
	struct d_ident *next;		/* in its space, newest first */
};

/* Rows of globals.def, subrs.def, actions.def and aggfuncs.def. */
enum builtin_source { BUILTIN_ARG, BUILTIN_ARGS, BUILTIN_UREGS, BUILTIN_BUILTIN, BUILTIN_NONE };

struct builtin {
	const char *name, *type;
	enum builtin_source source;
	unsigned int number;
};

enum { SUBR_STRSIZE = -1, SUBR_LOWERED = -2 };

struct subr {
	const char *name, *proto;
	int fn;			/* enum ir_fn, SUBR_LOWERED, or -1: not supported */
	int left_out;		/* the last argument's value when it is left out; SUBR_STRSIZE */
	const char *instead;	/* of one that is not supported: why, or what works; or NULL */
};

struct check;

struct action {
	const char *name, *proto;
	bool (*check)(struct check *c, struct d_node *call);	/* NULL: not supported yet */
	void (*lower)(struct lower *l, struct d_node *call);
	const char *instead;
};

struct aggfunc {
	const char *name, *proto;
	enum ir_agg_fn fn;
	unsigned int nparams;
	bool weight;
};

/* --- the compilation --------------------------------------------------------------------------------- */

/* What the probes of the clause at hand say about args[]. */
enum args_state { ARGS_UNKNOWN, ARGS_NONE, ARGS_DIFFER, ARGS_SAME };

struct check {
	struct arena *arena;
	struct diag *diag;
	struct d_prog *prog;
	struct types *types;
	const struct resolver *resolver;	/* or NULL: no probes are known */
	const struct d_opts *opts;

	struct d_ident *idents[SPACE_MAX];
	struct d_ident *params;			/* of the inline at hand */
	struct d_xstate *xlators;
	unsigned int unknown;			/* reports of names not known (yet) */

	const struct d_clause *clause;		/* NULL: outside */
	const struct d_node *stmt;		/* the statement's whole expression */
	enum args_state args_state;
	struct probe_sig sig;

	bool in_agg_key;			/* where stack() and its kind have a value */

	const struct type *t_void, *t_int, *t_int64, *t_uint64, *t_size, *t_string;
};

/* @resolver, @opts: NULL where there are none. */
void check_init(struct check *c, struct d_prog *prog, struct diag *diag, const struct resolver *resolver,
		const struct d_opts *opts);

/* The whole program.  False: there were mistakes. */
bool check_prog(struct check *c);

/* The rules of speculations for the clause @cl, whose statements are checked (check_spec.c). */
void check_spec_rules(struct check *c, const struct d_clause *cl);

/* --- reports ----------------------------------------------------------------------------------------- */

/* diag_error; the checker goes on. */
void check_error(struct check *c, struct src_pos pos, const char *tag, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));

/* "WHAT is not supported yet", and what works instead (or NULL). */
void check_unsupported(struct check *c, struct src_pos pos, const char *what, const char *instead);

/* The type of @n for a message. */
const char *check_text(struct check *c, const struct d_node *n);

/* --- types (check_type.c) ---------------------------------------------------------------------------- */

/* Stands for the type of @a in an expression: no value at all. */
extern const struct type check_agg_type;

bool node_is_agg(const struct d_node *n);
bool node_is_int(const struct d_node *n);
bool node_is_string(const struct d_node *n);
bool node_is_ptr(const struct d_node *n);		/* pointer or array */
bool node_is_scalar(const struct d_node *n);		/* integer or pointer */
bool node_is_action(const struct d_node *n);		/* a call of an action or aggregating function */
bool node_is_zero(const struct check *c, const struct d_node *n);	/* a constant 0 */
bool type_is_str_like(const struct type *t);		/* string, array of char, pointer to char */
bool type_is_blind_ptr(const struct type *t);		/* pointer to void or function: no size to step by */

/* May @n be given where a value of @to is wanted?  (user: @to holds addresses of the traced process) */
bool type_takes(const struct check *c, const struct type *to, bool user, const struct d_node *n);

/* Can the pointers (or a pointer and a constant 0) be compared and mixed?  *ret: the more telling type. */
bool type_ptr_compat(const struct check *c, const struct d_node *a, const struct d_node *b, const struct type **ret);

/* Can a variable or a record's field hold a value of @t: an integer, a pointer, a string? */
bool type_is_storable(const struct type *t);

/* How it is held. */
struct ir_slot type_slot(const struct type *t);

/*
 * The variable that @n, checked, is a part of: itself, a member of it, an element of an array in it, and so on.  NULL: @n
 * is in memory, or no lvalue.
 */
struct d_node *check_root(struct d_node *n);

/* --- expressions (check_name.c, check_expr.c, check_call.c) ------------------------------------------ */

/* What a node is used for. */
enum use { USE_READ, USE_ASSIGN, USE_MODIFY };	/* MODIFY: op= */

/* The type of @n, or NULL when something is wrong with it, which was then reported. */
const struct type *check_expr(struct check *c, struct d_node *n);

/* The identifier @name; a library that declares it is brought, or (ident_known) not.  NULL: none. */
struct d_ident *ident_find(struct check *c, enum ident_space space, const char *name);
struct d_ident *ident_known(struct check *c, enum ident_space space, const char *name);
struct d_ident *ident_new(struct check *c, enum d_ident_kind kind, enum ident_space space, const char *name,
			  struct src_pos pos);
const char *ident_kind_text(enum d_ident_kind kind);

/* A variable: D_NAME, D_INDEX of an associative array.  A new one may be made when @use is not USE_READ. */
const struct type *check_name(struct check *c, struct d_node *n, enum use use);
bool check_is_array_ref(struct check *c, struct d_node *n);	/* is the D_INDEX an associative array's? */
const struct type *check_array(struct check *c, struct d_node *n, enum use use);
const struct type *check_args(struct check *c, struct d_node *n);	/* args[n] */
/* Is @n uregs[...]?  Its type, and its register as @n->value. */
bool check_is_uregs(struct check *c, const struct d_node *n);
const struct type *check_uregs(struct check *c, struct d_node *n);
bool check_is_args(struct check *c, const struct d_node *n);

/* Type the keys of @id by @n's arguments, or compare them.  False: reported. */
bool check_keys(struct check *c, struct d_ident *id, struct d_node *n);

/* The subroutine, action or aggregating function @name, or NULL. */
struct d_ident *check_func_find(struct check *c, const char *name);

/* A call: the type of its value.  Only a @statement may be one of an action or an aggregating function. */
const struct type *check_call(struct check *c, struct d_node *n, bool statement);

/* name[args] of an inline with parameters: n->ident. */
const struct type *check_inline_call(struct check *c, struct d_node *n);

/* --- translators (check_xlate.c) --------------------------------------------------------------------- */

struct d_xstate;

/* A translated object: what was translated, by what, and (NULL: none) the inline with parameters that it came from. */
struct xlated {
	struct d_xstate *state;
	struct d_node *input, *outer;
};

void check_xlator(struct check *c, const struct d_xlator *x);
const struct type *check_xlate(struct check *c, struct d_node *n);

/* Is @n, checked, a translated object or (n->type) a pointer to one?  @ret is zeroed before. */
bool check_xlated(struct d_node *n, struct xlated *ret);

/* A pointer made by xlate has members and nothing else.  False: @n is one and was reported as operand of @what. */
bool check_not_xlated(struct check *c, struct d_node *n, const char *what);

/*
 * The type of @n, a member of a translated object, whose base and name are checked; NULL: reported.  n->ident is then an
 * inline of the input, n->args[0], and n->aux the xlated's outer.
 */
const struct type *check_xlated_member(struct check *c, struct d_node *n);

/* Its member @name as a checked node; NULL: the translator has none. */
struct d_node *check_xlated_node(struct check *c, const struct xlated *x, const char *name, struct src_pos pos);

/* Check the items from @first on, which a library has brought meanwhile (check.c). */
void check_new_items(struct check *c, size_t first);

/* Can a variable of @space hold an object of @t, a struct, union or array?  False: reported (check.c). */
enum { OBJECT_COPY_MAX = 1024, OBJECT_THIS_MAX = 1024 };
bool check_object(struct check *c, struct src_pos pos, enum ident_space space, const struct type *t);

/* --- statements (check_act.c, check_agg.c) ----------------------------------------------------------- */

bool check_printf(struct check *c, struct d_node *call);
bool check_printa(struct check *c, struct d_node *call);
bool check_print(struct check *c, struct d_node *call);
bool check_tracemem(struct check *c, struct d_node *call);
bool check_stack(struct check *c, struct d_node *call);
bool check_symbol(struct check *c, struct d_node *call);
bool check_command(struct check *c, struct d_node *call);
bool check_signal(struct check *c, struct d_node *call);
bool check_setopt(struct check *c, struct d_node *call);
bool check_spec(struct check *c, struct d_node *call);
bool check_trace(struct check *c, struct d_node *call);
bool check_exit(struct check *c, struct d_node *call);
bool check_aggact(struct check *c, struct d_node *call);	/* clear trunc normalize denormalize */

/* @a = f(); @a[keys] = f(). */
bool check_is_agg_ref(const struct d_node *n);
const struct d_node *check_agg_name(struct check *c, const struct d_node *n);	/* its D_AGG, or NULL: reported */
bool check_agg_assign(struct check *c, struct d_node *n);

/* What check_printf and check_printa found out: in the call's aux. */
struct printed {
	const struct fmt *fmt;		/* NULL: printa's default */
};

#endif
