/*
 * The tree of a D program: what parse.c builds, check_*.c annotate and lower_*.c read.
 *
 * Everything lives in the compilation's arena.  The comment on each node shows the script text that it represents;
 * every node has a position.  Fields marked [check] are the checker's: NULL or 0 after parsing.
 *
 * Types are C types (type/type.h), resolved while parsing, because C's grammar needs to know type names.
 * Names of variables and functions are not resolved: the parser knows their spelling and scope only.
 *
 * Guide: "Program Structure", "Types, Operators, and Expressions", "Variables", "Translators",
 * "Statically Defined Tracing for User Applications".
 */
#ifndef DTAP_D_AST_H
#define DTAP_D_AST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lang/desc.h"
#include "lang/source.h"
#include "type/type.h"

struct arena;
struct d_ident;		/* what a name refers to: set by the checker */

/* --- expressions ------------------------------------------------------------------------------------- */

enum d_kind {
	D_INT,		/* 10  0x1fUL  'a'  $1  $target */
	D_STR,		/* "text"  $$1 */
	D_NAME,		/* x  self->x  this->x  mod`x  `x */
	D_AGG,		/* @a  @: the name alone; keyed, it is the base of a D_INDEX */
	D_INDEX,	/* base[args]: associative array, aggregation, C array, pointer */
	D_CALL,		/* base(args): base is a D_NAME */
	D_MEMBER,	/* base.name  base->name (arrow) */
	D_UNARY,	/* op base: - + ~ ! * & ++ -- (the last two also D_POST) */
	D_BINARY,	/* lhs op rhs: arithmetic, comparison, && || ^^ , */
	D_ASSIGN,	/* lhs = rhs  lhs op= rhs */
	D_COND,		/* cond ? lhs : rhs */
	D_CAST,		/* (ctype)base */
	D_SIZEOF,	/* sizeof (ctype)  sizeof base */
	D_OFFSETOF,	/* offsetof(ctype, name) */
	D_STRINGOF,	/* stringof base */
	D_XLATE,	/* xlate <ctype>(base) */
};

enum d_op {
	D_OP_NONE,
	D_OP_ADD, D_OP_SUB, D_OP_MUL, D_OP_DIV, D_OP_MOD,
	D_OP_AND, D_OP_OR, D_OP_XOR, D_OP_SHL, D_OP_SHR,	/* & | ^ << >> */
	D_OP_EQ, D_OP_NE, D_OP_LT, D_OP_LE, D_OP_GT, D_OP_GE,
	D_OP_LAND, D_OP_LOR, D_OP_LXOR,				/* && || ^^ */
	D_OP_COMMA,
	D_OP_NEG, D_OP_PLUS, D_OP_NOT, D_OP_LNOT,		/* - + ~ ! */
	D_OP_DEREF, D_OP_ADDR,					/* * & */
	D_OP_PREINC, D_OP_PREDEC, D_OP_POSTINC, D_OP_POSTDEC,
};

/* The scope of a variable's name. */
enum d_scope { D_GLOBAL_SCOPE, D_SELF, D_THIS };

enum { D_MAX_DEPTH = 1000 };

struct d_node {
	enum d_kind kind;
	enum d_op op;			/* UNARY, BINARY; ASSIGN: the op of "op=", D_OP_NONE for "=" */
	struct src_pos pos;		/* of the operator if there is one, else of the first token */
	const struct type *type;	/* [check] the value's type; INT and STR: set by the parser */
	struct d_ident *ident;		/* [check] NAME, AGG, CALL, INDEX of an associative array */
	void *aux;			/* [check] */
	bool used;			/* [check] ASSIGN of a struct, union or array: its value is used */
	bool user;			/* [check] an address in the traced process, or an object there */

	struct d_node *lhs, *rhs;	/* BINARY, ASSIGN, COND */
	struct d_node *base;		/* UNARY, CAST, SIZEOF, STRINGOF, XLATE, MEMBER, INDEX, CALL */
	struct d_node *cond;		/* COND */
	struct d_node **args;		/* INDEX: the keys; CALL */
	size_t nargs, args_cap;

	const char *name;		/* NAME, AGG ("" for @), MEMBER, OFFSETOF */
	enum d_scope scope;		/* NAME */
	const char *mod;		/* NAME, CALL's base: mod`name, "" for `name; NULL: no backquote */
	bool arrow;			/* MEMBER: -> */

	const struct type *ctype;	/* CAST, SIZEOF (NULL: of base), OFFSETOF, XLATE */
	uint64_t value;			/* INT: as its type says */
	const char *str;		/* STR: escapes done, NUL-terminated */
	size_t str_len;			/* bytes; there may be NULs among them */
	bool from_macro;		/* INT, STR: written $1 $$1 $target ... */
	bool paren;			/* was written in parentheses */
	uint16_t depth;			/* of the subtree, at most D_MAX_DEPTH: recursion over it is safe */
};

/* --- statements and clauses -------------------------------------------------------------------------- */

enum d_stmt_kind { D_STMT_EXPR, D_STMT_IF };	/* an empty statement has no node */

struct d_block;

struct d_stmt {
	enum d_stmt_kind kind;
	struct src_pos pos;
	struct d_node *expr;		/* EXPR; IF: the condition */
	struct d_block *yes, *no;	/* IF; @no may be NULL */
};

struct d_block {
	struct d_stmt **stmts;
	size_t n, cap;
};

/* prov:mod:func:name, ... / pred / { body } */
struct d_clause {
	struct src_pos pos;
	struct probe_desc *descs;	/* at least one; macros are expanded ("python$target" is "python1234") */
	size_t ndescs, descs_cap;
	struct d_node *pred;		/* or NULL */
	struct d_block *body;		/* NULL: no braces, the default action */
	void *aux;			/* [check] */
};

/* --- declarations ------------------------------------------------------------------------------------ */

/* A parameter of an inline, a probe, or a key of an associative array. */
struct d_param {
	const char *name;		/* NULL: unnamed */
	const struct type *type;
	struct src_pos pos;
};

struct d_params {
	struct d_param *v;
	size_t n, cap;
	bool varargs;			/* ... at the end */
};

/* int x;  self string s;  this int a[4];  int seen[string, int];  extern int f(int, ...); */
struct d_decl {
	struct src_pos pos;		/* of the name */
	const char *name;
	enum d_scope scope;
	bool is_extern;
	const struct type *type;	/* the variable's; of an associative array its values'; TYPE_FUNC: prototype */
	bool assoc;
	struct d_params keys;		/* assoc */
};

/* inline int max = 10;  inline int twice[int n] = n * 2; */
struct d_inline {
	struct src_pos pos;
	const char *name;
	const struct type *type;
	bool assoc;			/* has parameters */
	struct d_params params;
	struct d_node *expr;
	bool is_const;			/* no parameters, and @expr is a constant integer: @value of @value_type */
	uint64_t value;
	const struct type *value_type;
};

/* translator out < in name > { member = expr; ... }; */
struct d_xlator_member {
	struct src_pos pos;
	const char *name;
	struct d_node *expr;
};

struct d_xlator {
	struct src_pos pos;
	const struct type *out, *in;
	const char *param;
	struct d_xlator_member *members;
	size_t nmembers, members_cap;
	bool lazy;			/* of a library: only members that are used must fit this kernel's types */
};

/* provider name { probe name(args) : (xargs); ... }; */
struct d_probe_def {
	struct src_pos pos;
	const char *name;		/* as written: "function__entry" */
	struct d_params args;		/* what the marker passes */
	struct d_params xargs;		/* what scripts see; the same as args when no ':' is given */
	bool has_xargs;
};

struct d_provider {
	struct src_pos pos;
	const char *name;
	struct d_probe_def *probes;
	size_t nprobes, probes_cap;
};

/* #pragma D option name[=value]; #pragma D attributes ...; #pragma D depends_on ... */
enum d_pragma_kind { D_PRAGMA_OPTION, D_PRAGMA_ATTRIBUTES, D_PRAGMA_BINDING, D_PRAGMA_DEPENDS };

struct d_pragma {
	enum d_pragma_kind kind;
	struct src_pos pos;
	bool of_lib;			/* it is in a library */
	const char *name;		/* OPTION: its name; ATTRIBUTES: "Stable/Stable/Common"; BINDING: the version;
					 * DEPENDS: provider, module or library */
	const char *value;		/* OPTION: the text after '=', or NULL; the others: what the pragma applies
					   to, words separated by one blank ("provider python") */
};

/* --- the program ------------------------------------------------------------------------------------- */

enum d_item_kind { D_ITEM_CLAUSE, D_ITEM_DECL, D_ITEM_INLINE, D_ITEM_XLATOR, D_ITEM_PROVIDER, D_ITEM_PRAGMA };

struct d_item {
	enum d_item_kind kind;
	bool checked;			/* [check] */
	union {
		struct d_clause *clause;
		struct d_decl *decl;
		struct d_inline *inl;
		struct d_xlator *xlator;
		struct d_provider *provider;
		struct d_pragma *pragma;
	};
};

/* A program: all sources in the order in which they were parsed.  A name is known from its declaration on. */
struct d_prog {
	struct arena *arena;
	struct types *types;
	struct d_item *items;
	size_t nitems, items_cap;
	struct d_state *state;		/* private to the parser */
};

/* The operator as written ("+", "<<"); of D_OP_NONE "". */
const char *d_op_text(enum d_op op);

struct strbuf;

/* The tree as text, one S-expression per node, for tests. */
void d_dump(struct strbuf *out, const struct d_prog *p);
void d_dump_node(struct strbuf *out, const struct d_node *n);

#endif
