/*
 * The checker: finds the type of every expression and the meaning of every name of a parsed script, and reports
 * mistakes.  What passed is turned into IR by lower.h.
 *
 * The rules are those of the DTrace guide ("Types, Operators, and Expressions", "Variables", "Pointers and Arrays",
 * "Strings"): C's rules, and these:
 *  - Strings are a type of their own; == != < <= > >= compare their text.
 *  - A variable that is not declared gets the type of the first thing assigned to it, in the script's
 *    order; ++ and -- make it an int64_t.  An associative array's keys are typed by their first use.
 *  - 0 stands for "no string" wherever a pointer might.
 *  - Any memory can be read through pointers, but only the clause's own be written.  Addresses are the kernel's, or
 *    the clause's own (from copyin()); those in args[] are the traced process's (d_node.user).
 *
 * A mistake is reported where it is; the node then has no type, and nothing is reported about expressions that
 * contain it.
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

/* A function's prototype; a NULL type accepts anything. */
struct proto {
	const struct type *result;
	const struct type *args[PROTO_MAX];
	const struct type *others[PROTO_MAX];	/* the second type of an argument that may have one of two; else NULL */
	unsigned int nargs, required;	/* number of named arguments, and of those that are required */
	bool varargs;			/* further arguments of any type may follow */
};

struct d_ident {
	enum d_ident_kind kind;
	enum ident_space space;
	const char *name;
	struct src_pos pos;		/* where it was first seen */
	const struct type *type;	/* of the value; NULL before the first assignment */
	bool declared;
	bool user;			/* SCALAR, ARRAY: holds addresses of the traced process */
	size_t tag;			/* SCALAR: its place among the addressed, from 1 on; 0: it is not */
	bool nullable;			/* SCALAR: a string that some assignment makes NULL */

	const struct type **keys;	/* ARRAY, AGG: the signature */
	size_t nkeys;
	bool keyed;			/* ARRAY, AGG: the signature is known */

	const struct aggfunc *fn;	/* AGG: NULL before the first assignment */
	int64_t param[4];		/* AGG: as in struct ir_agg */
	bool sign;			/* AGG: of the first value */

	struct d_inline *inl;		/* INLINE */
	struct d_ident **params;	/* INLINE */
	struct d_node *arg;		/* PARAM: the argument while its inline is lowered */

	const struct builtin *builtin;
	const struct subr *subr;
	const struct action *action;
	const struct aggfunc *aggfunc;
	const struct proto *proto;	/* SUBR, ACTION, AGGFUNC */

	struct ir_var *var;		/* SCALAR: created by the lowering when first needed, like the next three */
	struct ir_var *flag;		/* of a string: is it NULL; if thread-local, is it not */
	struct ir_map *map;
	struct ir_agg *agg;
	struct ir_map *strings;		/* of an object (lower_storage.c): its strings, or its words */
	struct ir_var **words;
	struct d_ident *next;		/* of the same name space, newest first */
};

/* Rows of globals.def, subrs.def, actions.def and aggfuncs.def. */
enum builtin_source { BUILTIN_ARG, BUILTIN_ARGS, BUILTIN_UREGS, BUILTIN_BUILTIN, BUILTIN_CALL, BUILTIN_NONE };

struct builtin {
	const char *name, *type;
	enum builtin_source source;
	unsigned int number;
	const char *instead;	/* NONE: why, or what works instead */
};

enum { SUBR_STRSIZE = -1, SUBR_LOWERED = -2, SUBR_FINDS = -3 };

struct subr {
	const char *name, *proto;
	int fn;			/* enum ir_fn, SUBR_LOWERED, or -1: not supported */
	int left_out;		/* default of the last argument; SUBR_STRSIZE, SUBR_FINDS */
	const char *instead;	/* not supported: why, or what works instead; or NULL */
};

struct check;

/* What an action does other than giving values to the tracer. */
enum action_effect {
	ACTION_RECORDS = 1,	/* it writes to the clause's record, so it may not follow commit() */
	ACTION_DESTROYS = 2,	/* it needs -w: guide, "Destructive Actions" */
	ACTION_NOW = 4,		/* it takes effect at once, so it may not follow speculate() */
	ACTION_SPECULATES = 8,	/* speculate(), commit() and discard() (check_spec.c) */
	ACTION_COMMITS = 16,
	ACTION_EXITS = 32,
};

/* Whose frames a stack action shows, or whose address a symbol action. */
enum d_frames { STACK_KERNEL, STACK_USER, STACK_JAVA, STACK_PYTHON, ADDR_KERNEL, ADDR_USER };

struct action {
	const char *name, *proto;
	bool (*check)(struct check *c, struct d_node *call);	/* NULL: not supported */
	void (*lower)(struct lower *l, struct d_node *call);
	int what;
	unsigned int effects;
	const char *instead;	/* not supported: why, or what works instead */
};

struct aggfunc {
	const char *name, *proto;
	enum ir_agg_fn fn;
	unsigned int nparams;
	bool weight;
};

/* --- the compilation --------------------------------------------------------------------------------- */

/* What the probes of the current clause say about args[]. */
enum args_state { ARGS_UNKNOWN, ARGS_NONE, ARGS_DIFFER, ARGS_SAME };

struct check {
	struct arena *arena;
	struct diag *diag;
	struct d_prog *prog;
	struct types *types;
	const struct resolver *resolver;	/* NULL: no probes are known */
	const struct d_opts *opts;

	struct d_ident *idents[SPACE_MAX];
	struct d_ident *params;			/* of the current inline */
	struct d_xstate *xlators;
	unsigned int unknown;			/* number of reports of unknown names */
	struct d_ident **addressed;		/* variables that & is applied to parts of (lower_mem.c) */
	size_t naddressed, addressed_cap;

	const struct d_clause *clause;		/* NULL: outside */
	const struct d_node *stmt;		/* the statement's whole expression */
	enum args_state args_state;
	struct probe_sig sig;

	bool in_agg_key;			/* where stack() and similar actions have a value */

	const struct type *t_void, *t_int, *t_int64, *t_uint64, *t_size, *t_string;
};

/* @resolver, @opts: may be NULL. */
void check_init(struct check *c, struct d_prog *prog, struct diag *diag, const struct resolver *resolver,
		const struct d_opts *opts);

/* Check the whole program.  False: there were mistakes. */
bool check_prog(struct check *c);

/* Check the rules of speculations for @cl, whose statements are checked already (check_spec.c). */
void check_spec_rules(struct check *c, const struct d_clause *cl);

/* --- reports ----------------------------------------------------------------------------------------- */

/* Report an error; the checker continues. */
void check_error(struct check *c, struct src_pos pos, const char *tag, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));

/* "WHAT is not supported yet", and what works instead (or NULL). */
void check_unsupported(struct check *c, struct src_pos pos, const char *what, const char *instead);

/* The type of @n for a message. */
const char *check_text(struct check *c, const struct d_node *n);

/* --- types (check_type.c) ---------------------------------------------------------------------------- */

/* The type of @a in an expression, where it has no value. */
extern const struct type check_agg_type;

bool node_is_agg(const struct d_node *n);
bool node_is_int(const struct d_node *n);
bool node_is_string(const struct d_node *n);
bool node_is_ptr(const struct d_node *n);		/* pointer or array */
bool node_is_scalar(const struct d_node *n);		/* integer or pointer */
bool node_is_action(const struct d_node *n);		/* a call of an action or aggregating function */
bool node_is_zero(const struct check *c, const struct d_node *n);	/* a constant 0 */
bool type_is_str_like(const struct type *t);		/* string, array of char, pointer to char */
bool type_is_blind_ptr(const struct type *t);		/* pointer to void or function: no element size */

/* Can @n be used where a value of type @to is expected?  (@user: @to holds addresses of the traced process) */
bool type_takes(const struct check *c, const struct type *to, bool user, const struct d_node *n);

/* Can the pointers (or a pointer and a constant 0) be compared and mixed?  *ret: the more specific type. */
bool type_ptr_compat(const struct check *c, const struct d_node *a, const struct d_node *b, const struct type **ret);

/* Can a variable or a record's field hold a value of @t: an integer, a pointer, a string? */
bool type_is_storable(const struct type *t);

/* The slot that holds such a value. */
struct ir_slot type_slot(const struct type *t);

/* The most bytes of traced memory in one record. */
enum { TRACED_MAX = 1024 };

/* Does trace() show the bytes of @n, a structure, a union or an array, in a table? */
bool check_traced_as_bytes(struct d_node *n);

/* Is it a character of a string, s[i] or *s?  Such a character can be read but not assigned to. */
bool check_is_char_of(const struct d_node *n);

/* The string s of s + i or i + s: the text from byte i on, as if s were a pointer.  NULL: @n is something else. */
struct d_node *check_text_from(const struct d_node *n);

struct d_node *check_root(struct d_node *n);

/* --- expressions (check_name.c, check_expr.c, check_call.c) ------------------------------------------ */

/* What a node is used for. */
enum use { USE_READ, USE_ASSIGN, USE_MODIFY };	/* MODIFY: op= */

/* Check @n.  Returns its type, or NULL after a reported mistake. */
const struct type *check_expr(struct check *c, struct d_node *n);

/* The identifier @name, or NULL.  ident_find loads a library that declares it, ident_known does not. */
struct d_ident *ident_find(struct check *c, enum ident_space space, const char *name);
struct d_ident *ident_known(struct check *c, enum ident_space space, const char *name);
struct d_ident *ident_new(struct check *c, enum d_ident_kind kind, enum ident_space space, const char *name,
			  struct src_pos pos);
const char *ident_kind_text(enum d_ident_kind kind);

/* Check a variable: D_NAME, D_INDEX of an associative array.  A new one is created if @use is not USE_READ. */
const struct type *check_name(struct check *c, struct d_node *n, enum use use);
bool check_is_array_ref(struct check *c, struct d_node *n);	/* is the D_INDEX one of an associative array? */
const struct type *check_array(struct check *c, struct d_node *n, enum use use);
const struct type *check_args(struct check *c, struct d_node *n);	/* args[n] */
/* Is @n uregs[...]?  Its type, and its register as @n->value. */
bool check_is_uregs(struct check *c, const struct d_node *n);
const struct type *check_uregs(struct check *c, struct d_node *n);
bool check_is_args(struct check *c, const struct d_node *n);

/* Is @t a struct or union that is known by its bytes, and so can be a key of an array: short, and no string in it? */
bool check_is_bytes(const struct type *t);

/* Turn the node into the constant @v. */
const struct type *check_become_int(struct d_node *n, const struct type *t, int64_t v);

/* Set the key types of @id from @n's arguments, or compare them.  False: reported. */
bool check_keys(struct check *c, struct d_ident *id, struct d_node *n);

/* The subroutine, action or aggregating function @name, or NULL. */
struct d_ident *check_func_find(struct check *c, const char *name);

/* Check a call; returns the type of its value.  Only a @statement may call an action or an aggregating function. */
const struct type *check_call(struct check *c, struct d_node *n, bool statement);

/* Check name[args] of n->ident, an inline with parameters. */
const struct type *check_inline_call(struct check *c, struct d_node *n);

/* --- translators (check_xlate.c) --------------------------------------------------------------------- */

struct d_xstate;

/*
 * A translated object: what was translated, by which translator, and the inline with parameters that it came from, or
 * NULL.
 */
struct xlated {
	struct d_xstate *state;
	struct d_node *input, *outer;
};

void check_xlator(struct check *c, const struct d_xlator *x);
const struct type *check_xlate(struct check *c, struct d_node *n);

/* Is @n, checked, a translated object or (n->type) a pointer to one?  @ret is zeroed before. */
bool check_xlated(struct d_node *n, struct xlated *ret);

/*
 * A pointer made by xlate can only be used to get members.  False: @n is one, and was reported as an operand of
 * @what.
 */
bool check_not_xlated(struct check *c, struct d_node *n, const char *what);

/*
 * The type of @n, a member of a translated object, whose base and name are checked; NULL: reported.  n->ident is then an
 * inline of the input, n->args[0], and n->aux the xlated's outer.
 */
const struct type *check_xlated_member(struct check *c, struct d_node *n);

/* The member @name of a translated object as a checked node; NULL: the translator does not have it. */
struct d_node *check_xlated_node(struct check *c, const struct xlated *x, const char *name, struct src_pos pos);

/* Check the items from @first on, which a library has added (check.c). */
void check_new_items(struct check *c, size_t first);

/* Can a variable of @space hold an object of @t, a struct, union or array?  False: reported (check.c). */
enum { STORAGE_COPY_MAX = 1024, STORAGE_THIS_MAX = 1024 };
bool check_storage(struct check *c, struct src_pos pos, enum ident_space space, const struct type *t);

/* --- statements (check_act.c, check_agg.c) ----------------------------------------------------------- */

bool check_printf(struct check *c, struct d_node *call);
bool check_printa(struct check *c, struct d_node *call);
bool check_print(struct check *c, struct d_node *call);
bool check_tracemem(struct check *c, struct d_node *call);
bool check_stack(struct check *c, struct d_node *call);
/* What pystack()'s second argument asks for; -1: no such word. */
enum { PYSTACK_LINE = 1, PYSTACK_FUNCTION = 2, PYSTACK_ASYNC = 4, PYSTACK_INSTRUCTION = 8 };
int check_pystack_detail(const char *text);
int64_t check_stack_frames(struct check *c, const struct d_node *call);	/* how many it has at most; an option may say */
const struct type *check_stack_member(struct check *c, struct d_node *n);	/* n->base is a stack; turns @n into its value */
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

/* The result of check_printf and check_printa: in the call's aux. */
struct printed {
	const struct fmt *fmt;		/* NULL: printa's default */
};

#endif
