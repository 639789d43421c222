/*
 * The checker: gives every expression of a parsed script its type, every name its meaning, and finds what
 * is wrong with them.  lower.h turns what passed into IR.
 *
 * The rules are those of the DTrace guide ("Types, Operators, and Expressions", "Variables", "Pointers and
 * Arrays", "Strings"), which are C's with these differences:
 *  - Operands are not promoted to int first: an operator works in the type of the higher rank of its two
 *    operands; rank is size, and at equal size unsigned is above signed.
 *  - Strings are a type of their own; == != < <= > >= compare their text.
 *  - A variable that is not declared gets the type of the first thing assigned to it, in the script's
 *    order; ++ and -- make it an int64_t.
 *  - 0 stands for "no string" wherever a pointer might.
 *
 * Files: check.c walks clauses and declarations, check_expr.c expressions, check_call.c subroutines and
 * prototypes, check_act.c actions and formats, check_agg.c aggregations, check_type.c compares types,
 * check_const.c computes constants.
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

/* Where a variable lives: x, self->x, this->x, @x. */
enum sym_scope { SYM_GLOBAL, SYM_SELF, SYM_THIS, SYM_AGG_SCOPE, SYM_NSCOPES };

enum sym_kind {
	SYM_SCALAR,
	SYM_ARRAY,		/* associative */
	SYM_AGG,
	SYM_INLINE,		/* inline, with or without parameters */
	SYM_PARAM,		/* a parameter of an inline */
};

struct sym {
	enum sym_scope scope;
	enum sym_kind kind;
	const char *name;
	struct src_pos pos;		/* where it was first seen */
	const struct type *type;	/* of the value; NULL: not known yet, nothing was assigned */
	bool declared;
	bool user;			/* holds addresses of user memory */

	const struct type **keys;	/* ARRAY, AGG: the signature once it is known; INLINE: of the parameters */
	unsigned int nkeys;
	bool keyed;			/* the signature is known */

	const struct d_aggfunc *fn;	/* AGG: NULL until one was assigned */
	int64_t param[4];		/* AGG: as in struct ir_agg */
	bool sign;			/* AGG: values are signed */

	struct d_node *body;		/* INLINE */
	struct sym **params;		/* INLINE */
	struct d_node *arg;		/* PARAM: what stands for it while the inline is lowered */

	union {				/* made by the lowering when first needed */
		struct ir_var *var;
		struct ir_map *map;
		struct ir_agg *agg;
	};
	struct sym *next;		/* in its scope, newest first */
};

/* A row of globals.def. */
enum d_global_source { D_GLOBAL_ARG, D_GLOBAL_ARGS, D_GLOBAL_BUILTIN, D_GLOBAL_NONE };

struct d_global {
	const char *name, *type;
	enum d_global_source source;
	unsigned int number;
};

/* A row of subrs.def. */
enum { D_STRSIZE = INT32_MAX };	/* a left-out argument's value: the size of a string */

struct d_subr {
	const char *name, *proto;
	enum ir_fn fn;		/* IR_FN_MAX: not supported yet */
	int32_t left_out;
};
