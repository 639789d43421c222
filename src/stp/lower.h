/*
 * Lowering: a checked script becomes IR (ir/ir.h).
 *
 * A long is an integer of 64 bits; a string is cut at MAXSTRINGLEN - 1 bytes wherever it is made; a variable
 * that was never set is 0 or "".  Each execution of a print is a record of its own, so that records are in the
 * order of the program whatever loops and branches do.
 *
 * Functions are expanded where they are called; those that call themselves become procedures.  All of a
 * handler that can fault is in a TRY, which reports the error (actions.def, ERROR).
 *
 * Statements are counted as SystemTap's translator does: most are one, a loop is one more for each turn, and
 * what was counted is paid for before the control flow parts or joins, or when ten have come together.
 *
 * Files: lower.c program and handlers, lower_stmt.c statements, lower_expr.c expressions, lower_data.c variables and
 * assignment, lower_array.c arrays and statistics, lower_print.c output, lower_call.c functions; builtin functions:
 * lower_func.c, lower_mem.c memory, lower_match.c regular expressions, lower_show.c stacks.
 */
#ifndef DTAP_STP_LOWER_H
#define DTAP_STP_LOWER_H

#include "ir/ir.h"
#include "stp/sem.h"
#include "stp/stp.h"

/* Functions in functions: what is beyond is reported, not lowered. */
enum { LOW_MAX_NODES = 1 << 18, LOW_MAX_CALLS = 60 };

/* A loop that break and continue can be meant for. */
struct low_loop {
	struct ir_block *again, *out;
	struct ir_iter *iter;		/* of foreach, or NULL */
	unsigned int tries;		/* around the loop */
	struct low_loop *outer;		/* in the same function */
};

/* The function being lowered. */
struct low_call {
	struct ir_var *result;		/* NULL: it has none */
	struct ir_block *next, *end;	/* where next and return go; next is NULL before one is met */
	bool procedure;
	unsigned int tries;		/* around it */
	struct low_loop *loop;		/* the caller's */
	struct low_call *outer;
};

/* A function that calls itself: a procedure of the clause. */
struct low_proc {
	struct stp_func *func;		/* the first of its overloads */
	struct ir_block *block;
	struct ir_var *result;
	struct low_proc *next;
};

struct low {
	struct arena *arena;
	struct diag *diag;
	struct stp *stp;
	struct stp_prog *tree;
	struct ir_prog *prog;
	struct stp_code *code;
	size_t nears_cap;
	struct ir_build b;

	const struct stp_handler *handler;
	struct stp_clause *clause;
	struct low_loop *loop;
	unsigned int tries;		/* around this place, in all functions */
	struct low_call *call;
	struct low_proc *procs, **procs_tail;
	bool counting;			/* statements of this clause */
	struct ir_var *began;		/* when the handler did, if that is measured; or NULL */
	unsigned int walks;		/* numbers has_loops's */
	/* Locals of each handler; NULL where the script calls nothing that needs them: */
	struct ir_var *tokens;		/* what tokenize() has not given yet */
	struct ir_var *groups;		/* of the last match of =~, the whole among them; 0: it failed */
	struct ir_var *base;		/* the value before -> of what is printed by $, or NULL */
	unsigned int statements;	/* counted, not yet paid for */
	struct src_pos last_pos;	/* of the last one */
	const char *last_what;
	unsigned int nodes, calls;	/* lowered so far; calls in calls */
};

/* A variable or an element of an array, its keys computed once. */
struct low_place {
	struct ir_var *var;
	struct ir_map *map;
	ir_reg keys[STP_MAX_INDEXES];
};

/* --- lower.c ----------------------------------------------------------------------------------------- */

/* That cannot be carried out, at @n; @hint says what to use instead, or is NULL. */
void low_refuse(struct low *l, const struct stp_node *n, const char *hint, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));

/* Faults of the instructions that follow name this place. */
void low_near(struct low *l, const char *what, struct src_pos pos);

/* A value to go on with after low_refuse. */
ir_reg low_dummy(struct low *l, enum stp_type type);

/* Where a handler ends: keep how long it took, if that is measured. */
void low_end_time(struct low *l);

/* How a value of @type is held. */
struct ir_slot low_slot(enum stp_type type);

/* --- lower_expr.c ------------------------------------------------------------------------------------ */

/* The value of @n; 0 of what has none. */
ir_reg low_expr(struct low *l, struct stp_node *n);

/* @n for its effect alone. */
void low_effect(struct low *l, struct stp_node *n);

/* Go to @yes if @n is not 0, else to @no. */
void low_cond(struct low *l, struct stp_node *n, struct ir_block *yes, struct ir_block *no);

/* @a @op @b; a fault names @at. */
ir_reg low_op(struct low *l, enum stp_op op, const struct stp_node *at, ir_reg a, ir_reg b);

/* A constant. */
ir_reg low_const(struct low *l, int64_t v);
ir_reg low_str(struct low *l, const char *s);

/* --- lower_data.c ------------------------------------------------------------------------------------ */

/* The IR's object for a variable or an array, made when first asked for. */
struct ir_var *low_var(struct low *l, struct stp_var *v);
struct ir_map *low_map(struct low *l, struct stp_var *v);

/* A local of the clause that no script can name. */
struct ir_var *low_temp(struct low *l, enum stp_type type);

/*
 * The values of the @n expressions @v, from left to right, into @vals; NULL ones are left out.  Each is alive at the
 * end, whatever the others do.
 */
void low_values(struct low *l, struct stp_node *const *v, size_t n, ir_reg *vals);

/* The place @n, its keys first, and then with @r that value into *val. */
void low_place(struct low *l, struct stp_node *n, struct low_place *p, struct stp_node *r, ir_reg *val);
ir_reg low_get(struct low *l, const struct low_place *p);
void low_put(struct low *l, const struct low_place *p, ir_reg val);

/* @val into the variable that @n, a STP_NAME, stands for. */
void low_store(struct low *l, struct stp_node *n, ir_reg val);

/* An assignment of any kind, ++ or --.  The result has its value if that is @used; else it is of no use. */
ir_reg low_assign(struct low *l, struct stp_node *n, bool used);
ir_reg low_crement(struct low *l, struct stp_node *n, bool used);

/* --- lower_array.c ----------------------------------------------------------------------------------- */

/* What they are called after: [keys] in array, array[keys], @count(...) and its kind, delete, foreach. */
ir_reg low_in(struct low *l, struct stp_node *n);
ir_reg low_index(struct low *l, struct stp_node *n);
ir_reg low_extract(struct low *l, struct stp_node *n);
void low_delete(struct low *l, struct stp_stmt *s);
void low_foreach(struct low *l, struct stp_stmt *s);

/* --- lower_stmt.c ------------------------------------------------------------------------------------ */

/* @s and all that is in it. */
void low_stmt(struct low *l, struct stp_stmt *s);

/* Count @n statements at @s; @pay: now. */
void low_count(struct low *l, unsigned int n, const char *what, struct src_pos pos, bool pay);

/* --- lower_print.c ----------------------------------------------------------------------------------- */

/* print(), printf(), println() and their kind; sprint() and its kind have a value. */
ir_reg low_print(struct low *l, struct stp_node *n);

/* A record with one action over the @n values @vals. */
void low_record(struct low *l, enum ir_act_kind kind, const char *format, const ir_reg *vals, unsigned int n,
		struct src_pos pos);

/* The same with one value, which is printed as @show says. */
void low_record_shown(struct low *l, ir_reg val, enum ir_show show, struct src_pos pos);

/* Is @n a call whose value only the print around it knows (functions.def, SHOW)?  Then its number, and how to
 * show it. */
bool low_shown(struct low *l, struct stp_node *n, ir_reg *val, enum ir_show *show);

/* @format of the @n values @vals as a string. */
ir_reg low_sprintf(struct low *l, const char *format, const ir_reg *vals, unsigned int n);

/* --- lower_call.c ------------------------------------------------------------------------------------ */

/* A call of a function, $target->member, string =~ regex. */
ir_reg low_call(struct low *l, struct stp_node *n);
ir_reg low_target(struct low *l, struct stp_node *n);

/* Write @value to where @n, such a node, is: what was written. */
ir_reg low_write(struct low *l, struct stp_node *n, struct stp_node *value);
ir_reg low_match(struct low *l, struct stp_node *n);

/* Lower the procedures that the clause calls, and those that they call. */
void low_procs(struct low *l);

/* Find the functions of @p that call themselves. */
void low_find_recursive(struct stp_prog *p);

/* Give the variables @vars the value that they begin with. */
void low_clear(struct low *l, const struct stp_vars *vars);

/* The program of @tree, or NULL: reported. */
struct stp_code *low_prog(struct stp *stp, struct arena *a, struct diag *diag, struct stp_prog *tree, bool timing);

#endif
