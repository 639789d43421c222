/*
 * The tree of a SystemTap script: what parse*.c build, alias.c expands into handlers, and symbols.c, elide.c
 * and infer.c annotate.  The lowering reads handlers, functions and globals of a struct stp_prog.
 *
 * Everything lives in the compilation's arena.  The comment on each node shows the script text that it represents;
 * every node has a position.  Fields marked [sym] and [type] are set by those passes: NULL or 0 after parsing.
 *
 * All points of a probe share its body until alias.c copies it for each handler, because each handler has its own
 * locals, types and context variables.
 *
 * Language reference: chapters "Components of a SystemTap script", "Probe points", "Language elements",
 * "Statement types", "Associative arrays", "Statistics (aggregates)".
 */
#ifndef DTAP_STP_AST_H
#define DTAP_STP_AST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lang/source.h"

struct arena;
struct stp_tok;
struct stp_late;
struct fmt;
struct ir_map;
struct ir_var;
struct stp_func;
struct stp_builtin;
struct stp_source;
struct strbuf;

enum stp_type { STP_UNKNOWN, STP_LONG, STP_STRINGS, STP_STATS };

/* --- variables --------------------------------------------------------------------------------------- */

enum { STP_ARITY_UNKNOWN = -1, STP_MAX_INDEXES = 9 };

/* What is extracted from a statistic: bits of struct stp_var.stats. */
enum stp_stat {
	STP_STAT_COUNT, STP_STAT_SUM, STP_STAT_MIN, STP_STAT_MAX, STP_STAT_AVG, STP_STAT_VARIANCE,
	STP_HIST_LINEAR, STP_HIST_LOG,
};

/* A global, or a local or parameter of a function or handler. */
/* What a text may contain that only the tracer knows (places.c). */
enum stp_mark { STP_MARK_NONE, STP_MARK_STACK, STP_MARK_NAME };

struct stp_var {
	const char *name;
	struct src_pos pos;		/* global, parameter: of the declaration; local: of the first use */
	enum stp_type type;		/* [type] unless declared */
	bool is_global, is_private, is_param;
	bool synthetic;			/* created by a pass */

	int arity;			/* indexes of an array; 0: scalar; STP_ARITY_UNKNOWN */
	const struct stp_node *named;	/* [sym] the first use of a global, with @named_arity indexes */
	size_t named_arity;
	enum stp_type *index_types;	/* [type] @arity of them */
	struct src_pos type_pos, arity_pos, *index_pos;	/* [type] where that was first found, for messages */
	const char *type_what, *arity_what, **index_what;	/* the token there */
	int64_t max_size;		/* a[N]; 0: the default, MAXMAPENTRIES */
	bool wrap;			/* a%: new elements replace the oldest */
	struct stp_node *init;		/* STP_NUM, STP_STR or NULL */

	unsigned int stats;		/* [sym] 1 << enum stp_stat */
	int64_t hist[3];		/* [sym] @hist_linear: low, high, width */
	int64_t shift;			/* [sym] bit shift of @avg and @variance */
	unsigned int reads, writes;	/* [sym] */
	bool from_library;
	const struct stp_node *assigned;	/* lower_late.c: the only assignment to a handler's local, or NULL */
	bool settled;			/* lower_late.c: that assignment has been lowered */
	const struct stp_late *late;	/* lower_late.c: the parts of its text, or NULL */
	enum { STP_USE_UNKNOWN, STP_USE_PRINTED, STP_USE_ANY } use;	/* lower_late.c: of a parameter */
	bool known;			/* lower_call.c: a parameter that is @known_value in the call that is expanded */
	int64_t known_value;
	enum stp_mark mark, key_mark;	/* places.c: of values, and of an array's keys */
	bool used;			/* display.c: its value is used */
	bool is_set;			/* display.c: it is changed otherwise than by ++ and += */
	const void *target;		/* autocast.c: what the value, or an element's, points to, or NULL */
	bool targets;			/* autocast.c: values point to different things */
	struct ir_var *ir;		/* lower_data.c */
	struct ir_map *map;
	struct stp_var *next;
};

struct stp_vars {
	struct stp_var *first, **tail;
};

/* --- expressions ------------------------------------------------------------------------------------- */

enum stp_kind {
	STP_NUM,		/* 10  0x1f */
	STP_STR,		/* "text" */
	STP_NAME,		/* x: variable, or a function without arguments */
	STP_INDEX,		/* l[args]: l is a STP_NAME or a STP_HIST; an argument of NULL is * */
	STP_CALL,		/* name(args) */
	STP_UNARY,		/* op l: + - ! ~ */
	STP_ADDRESS,		/* &l */
	STP_PRE,		/* ++l --l */
	STP_POST,		/* l++ l-- */
	STP_BINARY,		/* l op r: arithmetic, bits, shifts, comparison, "." */
	STP_LOGIC,		/* l && r  l || r */
	STP_COND,		/* cond ? l : r */
	STP_ASSIGN,		/* l op r: = <<< += ... */
	STP_IN,			/* args in l: an argument of NULL is * */
	STP_MATCH,		/* l =~ "regex"  l !~ "regex": str */
	STP_TARGET,		/* $name  $$name  @var("name", "module"), with parts */
	STP_CAST,		/* @cast(l, "type", "module"), with parts */
	STP_DEREF,		/* l->name  l[i] of a value: parts */
	STP_ENTRY,		/* @entry(l) */
	STP_DEFINED,		/* @defined(l) */
	STP_PERF,		/* @perf("name") */
	STP_CONST,		/* @const("NAME") */
	STP_REGISTER,		/* @kregister(l) @uregister(l) */
	STP_MEMORY,		/* @kderef(l, r) @uderef(l, r) */
	STP_WRITTEN,		/* @probewrite(l) */
	STP_EXTRACT,		/* @count(l) @avg(l, shift) ... */
	STP_HIST,		/* @hist_linear(l, low, high, width)  @hist_log(l) */
	STP_PRINT,		/* print... and sprint... */
};

enum stp_op {
	STP_OP_NONE,
	STP_ADD, STP_SUB, STP_MUL, STP_DIV, STP_MOD,
	STP_AND, STP_OR, STP_XOR, STP_SHL, STP_SHR, STP_LSHR,	/* & | ^ << >> >>> */
	STP_CONCAT,
	STP_EQ, STP_NE, STP_LT, STP_LE, STP_GT, STP_GE,
	STP_LAND, STP_LOR,
	STP_NEG, STP_PLUS, STP_NOT, STP_LNOT,
	STP_ADDEND,		/* <<< */
};

enum { STP_MAX_DEPTH = 600 };

/* ->name and [index] behind a context variable or a value. */
struct stp_part {
	const char *name;		/* ->name, or NULL */
	struct stp_node *index;		/* [index], or NULL */
	struct src_pos pos;
};

/* The function of a print operator: a row of prints.def. */
struct stp_print {
	const char *name;
	bool formatted, to_string, newline, delimited, one_char;
};

struct stp_node {
	enum stp_kind kind;
	enum stp_op op;			/* UNARY BINARY LOGIC; ASSIGN: of "op=", STP_ADDEND; PRE POST: ADD SUB */
	struct src_pos pos;		/* of the operator if there is one, else of the first token */
	const char *what;		/* the token there, for messages: "operator '+'" */
	enum stp_type type;		/* [type] */

	struct stp_node *l, *r, *cond;
	struct stp_node **args;		/* INDEX CALL IN PRINT */
	size_t nargs, args_cap;

	const char *name;		/* NAME CALL TARGET ("$x"; @var: "x@file.c") PERF CONST */
	int64_t value;			/* NUM; EXTRACT: the shift */
	int64_t hist[3];		/* HIST */
	const char *str;		/* STR MATCH PRINT (format or delimiter); CAST: the type; NUL-terminated */
	size_t str_len;
	struct src_pos str_pos;		/* MATCH: of the expression */
	const char *module;		/* @cast @var, or NULL */
	struct stp_part *parts;		/* TARGET CAST DEREF */
	size_t nparts, parts_cap;
	unsigned int pretty;		/* TARGET CAST DEREF: number of $ at the end, 0 to 2 */
	bool is_var;			/* TARGET: written @var */
	bool addressed;			/* TARGET CAST DEREF: & before it */
	bool negated;			/* MATCH: !~ */
	uint32_t groups;		/* MATCH: of the expression, the whole among them */
	bool user;			/* REGISTER MEMORY: @u... */
	enum stp_stat stat;		/* EXTRACT HIST */
	const struct stp_print *print;
	const struct fmt *fmt;		/* PRINT formatted */

	struct stp_var *var;		/* [sym] NAME */
	struct stp_func *func;		/* [sym] NAME CALL: the first of its overloads */
	const struct stp_builtin *builtin;	/* [sym] NAME CALL */
	const struct stp_source *source;	/* [sym] TARGET CAST, DEREF (autocast.c): how it is had, or NULL */
	const char *why;		/* [sym] TARGET CAST DEREF: why there is no source, or NULL */
	const void *target;		/* autocast.c: what the value points to, the resolver's, or NULL */
	uint16_t depth;			/* of the tree below, at most STP_MAX_DEPTH: recursion over it is safe */
};

/* --- statements -------------------------------------------------------------------------------------- */

enum stp_stmt_kind {
	STP_S_NULL,		/* ; */
	STP_S_BLOCK,		/* { ... } */
	STP_S_EXPR,
	STP_S_IF,		/* if (expr) yes else no */
	STP_S_FOR,		/* for (init; expr; incr) yes, while (expr) yes */
	STP_S_FOREACH,		/* foreach (value = [keys] in array[slice] @stat+ limit expr) yes */
	STP_S_RETURN,		/* return expr */
	STP_S_DELETE,		/* delete expr */
	STP_S_NEXT,
	STP_S_BREAK,
	STP_S_CONTINUE,
	STP_S_TRY,		/* try yes catch (value) no */
};

struct stp_stmt {
	enum stp_stmt_kind kind;
	struct src_pos pos;
	const char *what;
	struct stp_node *expr;		/* EXPR IF FOR RETURN DELETE; FOREACH: the limit; may be NULL but in EXPR IF */
	struct stp_node *init, *incr;	/* FOR, or NULL */
	struct stp_stmt *yes, *no;	/* IF FOR FOREACH TRY */
	struct stp_stmt **stmts;	/* BLOCK */
	size_t n, cap;

	struct stp_node **keys;		/* FOREACH: STP_NAMEs */
	size_t nkeys, keys_cap;
	struct stp_node *value;		/* FOREACH TRY: STP_NAME, or NULL */
	struct stp_node *array;		/* FOREACH: STP_NAME or STP_HIST */
	struct stp_node **slice;	/* FOREACH: NULL is *; nslice 0: none */
	size_t nslice, slice_cap;
	int sort_dir;			/* FOREACH: 1, -1, or 0 */
	unsigned int sort_column;	/* 0: the value, else a key */
	bool sort_by_stat;		/* the value is a statistic, and is sorted by @sort_stat */
	enum stp_stat sort_stat;
	uint16_t depth;
};

/* --- declarations ------------------------------------------------------------------------------------ */

/* name(literal) of a probe point. */
struct stp_comp {
	const char *name;		/* may be a pattern */
	struct stp_node *arg;		/* STP_NUM, STP_STR or NULL */
	struct src_pos pos;
};

struct stp_point {
	struct src_pos pos;
	struct stp_comp *comps;
	size_t n, cap;
	bool optional, sufficient;	/* ? ! */
	bool inlined;			/* found: in a copy of the function inside of another */
	struct stp_node *cond;		/* if (cond), or NULL */
	struct stp_node *filter;	/* found: what must be true besides, of the resolver's own variables; or NULL */
};

struct stp_points {
	struct stp_point **v;
	size_t n, cap;
};

/* probe points { body }; an alias, if it has names: probe name = points { body }, { after } */
struct stp_probe {
	struct src_pos pos;
	struct stp_points names;	/* of an alias: aliases of one body */
	bool epilogue;			/* += */
	struct stp_points points;
	struct stp_stmt *body, *after;	/* @after: the second block of an alias, its epilogue, or NULL */
	bool is_private;
	bool from_library;
	bool expanding;			/* alias.c: to see an alias that names itself */
	struct stp_probe *next;
};

struct stp_func {
	const char *name;
	struct src_pos pos;
	const char *what;
	enum stp_type type;		/* [type] unless declared */
	struct src_pos type_pos;
	const char *type_what;
	bool is_private, from_library;
	int64_t priority;		/* of overloads: the smaller first */
	struct stp_vars params;
	size_t nparams;
	struct stp_stmt *body;
	struct stp_vars locals;		/* [sym] without the parameters */
	bool needed;			/* [sym] called by what is kept */
	bool pure;			/* elide.c: nobody sees that it was called */
	const void *target;		/* autocast.c: what the result points to, or NULL */
	bool targets;			/* autocast.c: values point to different things */
	enum stp_mark mark_of_result;	/* places.c */
	unsigned int mark;		/* loops.c: seen in the search of that number */
	bool recursive;			/* lower_call.c: it calls itself, maybe through others */
	const struct stp_func *seen;	/* lower_call.c: where that was looked for last */
	struct stp_func *overload;	/* [sym] the next of the same name */
	bool contextual;		/* [sym] it has context variables: each handler that calls it has a copy */
	const struct stp_func *copy_of;	/* [sym] it is the copy of that one for @handler */
	const struct stp_handler *handler;
	struct stp_func *next;
};

/* What alias.c makes of a probe: one point that exists, and everything that runs there. */
struct stp_handler {
	struct src_pos pos;
	const struct stp_point *point;	/* of a row of points.def: no alias, no pattern */
	const struct stp_point *written;	/* as the script's probe has it */
	int kind;			/* enum stp_point_kind */
	struct stp_stmt **blocks;	/* in the order they run: prologues, the body, epilogues */
	size_t nblocks, blocks_cap;
	struct stp_node **conds;	/* all must be true */
	size_t nconds, conds_cap;
	struct stp_vars locals;		/* [sym] of all blocks together */
	struct stp_handler *next;
};

/* All scripts of a program. */
struct stp_prog {
	struct arena *arena;
	struct stp_vars globals;
	struct stp_probe *probes, **probes_tail;	/* aliases too, in order */
	struct stp_func *funcs, **funcs_tail;
	struct stp_handler *handlers, **handlers_tail;	/* [alias] */
	size_t nentries;				/* [alias] @entry so far */
	const struct stp_tok *embedded;			/* the first code between %{ and %}, or NULL */
	struct stp_tapset *tapset;			/* for suggestions, or NULL */
};

struct stp_prog *stp_prog_new(struct arena *a);

/* --- helpers ----------------------------------------------------------------------------------------- */

struct stp_var *stp_var_add(struct arena *a, struct stp_vars *vars, const char *name, struct src_pos pos);
struct stp_var *stp_var_find(const struct stp_vars *vars, const char *name);

/* A copy of all below @s or @n, without annotations. */
struct stp_stmt *stp_copy_stmt(struct arena *a, const struct stp_stmt *s);
struct stp_node *stp_copy_node(struct arena *a, const struct stp_node *n);

/*
 * Call @f on each node that hangs directly under @n or @s, including expressions of statements but not
 * statements under it; @f may replace it through the pointer.
 */
void stp_each_node(struct stp_node *n, void (*f)(void *ctx, struct stp_node **child), void *ctx);
void stp_each_expr(struct stp_stmt *s, void (*f)(void *ctx, struct stp_node **child), void *ctx);

/* The same for the statements directly under @s. */
void stp_each_stmt(struct stp_stmt *s, void (*f)(void *ctx, struct stp_stmt **child), void *ctx);

const char *stp_stat_text(enum stp_stat stat);	/* "@count" */
const char *stp_type_text(enum stp_type type);	/* "long" */

/* The tree as text, for tests: fully parenthesized, as stap -p1 shows it. */
void stp_dump(struct strbuf *out, const struct stp_prog *p);
void stp_dump_node(struct strbuf *out, const struct stp_node *n);
void stp_dump_point(struct strbuf *out, const struct stp_point *p);

#endif
