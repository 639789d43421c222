/*
 * Lowering: a checked script becomes IR (ir/ir.h).
 *
 * A long is an integer of 64 bits; every operation cuts its string result at MAXSTRINGLEN - 1 bytes; a variable that
 * was never set is 0 or "".  Each execution of a print writes a record, so that records are in the order of
 * execution.
 *
 * Functions are expanded inline; recursive functions become procedures.  Code of a handler that can fault is in a
 * TRY, which reports the error (actions.def, ERROR).
 *
 * Statements are counted as by SystemTap's translator: most count one, a loop one more for each turn.  The count is
 * subtracted from the budget where the control flow branches or joins, or after ten statements.
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

/* Limits for nested expansion of functions; more is reported, not lowered. */
enum { LOW_MAX_NODES = 1 << 18, LOW_MAX_CALLS = 60 };

/* A loop to which break and continue can refer. */
struct stp_lower_loop {
	struct ir_block *again, *out;
	struct ir_iter *iter;		/* of foreach, or NULL */
	unsigned int tries;		/* number of TRYs around the loop */
	struct stp_lower_loop *outer;		/* in the same function */
};

/* The function being lowered. */
struct stp_lower_call {
	struct ir_var *result;		/* NULL: none */
	struct ir_block *next, *end;	/* targets of next and return; next is NULL until the first one */
	bool procedure;
	const struct stp_node *site;	/* the call; NULL for a procedure, which may have several */
	unsigned int tries;		/* around it */
	struct stp_lower_loop *loop;		/* the caller's */
	struct stp_lower_choice *choice;	/* takes the texts that are returned (lower_late.c), or NULL */
	struct stp_lower_call *outer;
};

/* A function that calls itself: a procedure of the clause. */
struct stp_lower_proc {
	struct stp_func *func;		/* the first of its overloads */
	struct ir_block *block;
	struct ir_var *result;
	struct stp_lower_proc *next;
};

/* A catch with a variable; the code at @block computes its @message. */
struct stp_lower_catch {
	struct ir_block *block, *end;
	struct ir_var *message;
	uint32_t first, last;		/* the body's entries in stp_code.nears */
	struct stp_lower_catch *next;
};

struct lower {
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
	struct stp_lower_loop *loop;
	unsigned int tries;		/* TRYs around the current statement, in all functions */
	struct stp_lower_call *call;
	struct stp_lower_proc *procs, **procs_tail;
	struct stp_lower_catch *catches;	/* of this clause, messages not yet lowered */
	bool counting;			/* count this clause's statements */
	struct ir_var *began;		/* the handler's start time, if measured; or NULL */
	unsigned int walks;		/* numbers the searches of has_loops */
	/* Locals of each handler; NULL if the script does not need them: */
	struct ir_var *tokens;		/* the rest of tokenize()'s string */
	struct ir_var *groups;		/* groups of the last match of =~, including the whole; 0: it failed */
	struct ir_var *base;		/* the value before -> where $ prints a structure, or NULL */
	unsigned int statements;	/* counted, not yet subtracted */
	struct src_pos last_pos;	/* of the last one */
	const char *last_what;
	unsigned int nodes, calls;	/* nodes lowered so far; nesting of calls */
};

/* A variable or an element of an array, its keys computed once. */
struct stp_lvalue {
	struct ir_var *var;
	struct ir_map *map;
	ir_reg keys[STP_MAX_INDEXES];
};

/* --- lower.c ----------------------------------------------------------------------------------------- */

/* Report that something at @n is not supported; @hint says what to use instead, or is NULL. */
void stp_lower_refuse(struct lower *l, const struct stp_node *n, const char *hint, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));

/* Faults of the following instructions name @what at @pos. */
void stp_lower_near(struct lower *l, const char *what, struct src_pos pos);

/* A value to continue with after stp_lower_refuse. */
ir_reg stp_lower_dummy(struct lower *l, enum stp_type type);

/* At a handler's end: record its duration, if measured. */
void stp_lower_end_time(struct lower *l);

/* The slot for a value of @type. */
struct ir_slot stp_lower_slot(enum stp_type type);

/* --- lower_expr.c ------------------------------------------------------------------------------------ */

/* The value of @n; 0 if it has none. */
ir_reg stp_lower_expr(struct lower *l, struct stp_node *n);

/* Lower @n only for its effect. */
void stp_lower_effect(struct lower *l, struct stp_node *n);

/* Jump to @yes if @n is not 0, else to @no. */
void stp_lower_cond(struct lower *l, struct stp_node *n, struct ir_block *yes, struct ir_block *no);

/* @a @op @b; the message of a fault names @at. */
ir_reg stp_lower_op(struct lower *l, enum stp_op op, const struct stp_node *at, ir_reg a, ir_reg b);

/* A constant. */
ir_reg stp_lower_const(struct lower *l, int64_t v);
ir_reg stp_lower_str(struct lower *l, const char *s);

/* --- lower_data.c ------------------------------------------------------------------------------------ */

/* The IR's variable or map for a variable or an array, created when first needed. */
struct ir_var *stp_lower_var(struct lower *l, struct stp_var *v);
struct ir_map *stp_lower_map(struct lower *l, struct stp_var *v);

/* A new local of the clause, without a name. */
struct ir_var *stp_lower_temp(struct lower *l, enum stp_type type);

/*
 * Lower the @n expressions @v, from left to right, into @vals; NULL ones are skipped.  All registers are still valid
 * at the end, whatever later expressions do.
 */
void stp_lower_values(struct lower *l, struct stp_node *const *v, size_t n, ir_reg *vals);

/* Lower the lvalue @n: first its keys, then @r, unless NULL, into *val. */
void stp_lower_lvalue(struct lower *l, struct stp_node *n, struct stp_lvalue *p, struct stp_node *r, ir_reg *val);
ir_reg stp_lower_get(struct lower *l, const struct stp_lvalue *p);
void stp_lower_put(struct lower *l, const struct stp_lvalue *p, ir_reg val);

/* Store @val in the variable of @n, a STP_NAME. */
void stp_lower_store(struct lower *l, struct stp_node *n, ir_reg val);

/* Any assignment, ++ or --.  The result is its value if @used, else undefined. */
ir_reg stp_lower_assign(struct lower *l, struct stp_node *n, bool used);
ir_reg stp_lower_crement(struct lower *l, struct stp_node *n, bool used);

/* --- lower_array.c ----------------------------------------------------------------------------------- */

/* [keys] in array, array[keys], @count(...) and other extractors, delete, foreach. */
ir_reg stp_lower_in(struct lower *l, struct stp_node *n);
ir_reg stp_lower_index(struct lower *l, struct stp_node *n);
ir_reg stp_lower_extract(struct lower *l, struct stp_node *n);
void stp_lower_delete(struct lower *l, struct stp_stmt *s);
void stp_lower_foreach(struct lower *l, struct stp_stmt *s);

/* --- lower_stmt.c ------------------------------------------------------------------------------------ */

/* Lower @s with its substatements. */
void stp_lower_stmt(struct lower *l, struct stp_stmt *s);

/*
 * Lower the messages for this clause's catches, at its end; those of its procedures have entries in stp_code.nears
 * from @procs on.
 */
void stp_lower_messages(struct lower *l, uint32_t procs);

/* Count @n statements; @pay: subtract them now. */
void stp_lower_count(struct lower *l, unsigned int n, const char *what, struct src_pos pos, bool pay);

/* --- lower_print.c ----------------------------------------------------------------------------------- */

/* print(), printf(), println() and other prints; sprint() and similar ones have a value. */
ir_reg stp_lower_print(struct lower *l, struct stp_node *n);

/* Write a record with one action and the @n values @vals. */
void stp_lower_record(struct lower *l, enum ir_act_kind kind, const char *format, const ir_reg *vals, unsigned int n,
		      struct src_pos pos);

/* The same with one value, printed according to @show. */
void stp_lower_record_shown(struct lower *l, ir_reg val, enum ir_show show, struct src_pos pos);

/*
 * Is @n a call whose value only the tracer's output knows (functions.def, SHOW)?  Then return its number in *val and
 * its kind in *show.
 */
bool stp_lower_shown(struct lower *l, struct stp_node *n, ir_reg *val, enum ir_show *show);

/*
 * lower_late.c: find the locals of @h whose texts can be made later; for such an assignment @n keep the parts of the
 * text instead.
 */
struct arch_reg;
struct stp_late;
struct stp_lower_choice;
void stp_lower_find_late(const struct stp_handler *h);

/* Is the argument @n, for the parameter @p of the function @f, a text that can be made where @f prints it? */
bool stp_lower_passes_late(const struct stp_func *f, struct stp_var *p, const struct stp_node *n);
bool stp_lower_keep_late(struct lower *l, struct stp_node *n);
ir_reg stp_lower_late_text(struct lower *l, const struct stp_late *late);

/* Put the text @n, which a function returns, into @c.  False: it is none that can be made later; nothing was done. */
bool stp_lower_return_late(struct lower *l, struct stp_lower_choice *c, struct stp_node *n);

/*
 * The text in a print.  Where it is one of several, each way is a print: call @fn for each of the first open choice, at
 * the start of a block of its own; in it the choice is made.  When nothing is open: its format; its values, and their
 * number, at most stp_lower_late_room().
 */
unsigned int stp_lower_late_ways(const struct stp_late *late);
unsigned int stp_lower_late_room(const struct stp_late *late);
struct stp_lower_choice *stp_lower_late_open(const struct stp_late *late);
void stp_lower_late_each(struct lower *l, struct stp_lower_choice *c, void (*fn)(void *ctx), void *ctx);
void stp_lower_late_format(struct lower *l, const struct stp_late *late, struct strbuf *out);
unsigned int stp_lower_late_parts(struct lower *l, const struct stp_late *late, ir_reg *vals, enum ir_show *shows);

/* The format @text as printf() reads it. */
const struct fmt *stp_lower_parse_format(struct lower *l, const char *text, size_t len);

/* The length of the conversion of printf() at @s, a %. */
size_t stp_lower_conv_len(const char *s);

/*
 * lower_mem.c: read the string of user_string_quoted() and its like, @call, into @text; @instead becomes IR_READABLE,
 * or, if it cannot be read, its address.
 */
void stp_lower_read_string(struct lower *l, struct stp_node *call, const ir_reg *args, struct ir_var *text,
			   struct ir_var *instead);

/* The string from @format and the @n values @vals. */
/* The name of an address, or a stack, that is @n's value: a string with a mark (ir.h, IR_MARK). */
ir_reg stp_lower_mark(struct lower *l, struct stp_node *n);

ir_reg stp_lower_sprintf(struct lower *l, const char *format, const ir_reg *vals, unsigned int n);

/* --- lower_call.c ------------------------------------------------------------------------------------ */

/* Expand the call @n; @c takes the texts that can be made later.  Returns the variable that has any other. */
struct ir_var *stp_lower_call_late(struct lower *l, struct stp_node *n, struct stp_lower_choice *c);

/* A call of a function, $target->member, string =~ regex. */
ir_reg stp_lower_call(struct lower *l, struct stp_node *n);
ir_reg stp_lower_target(struct lower *l, struct stp_node *n);

/* lower_mem.c: a register of the process, zero-extended; of the handler's probe, or refused at @n. */
ir_reg stp_lower_register(struct lower *l, const struct stp_node *n, const struct arch_reg *reg);

/* @uregister(n), @kregister(n). */
ir_reg stp_lower_numbered_register(struct lower *l, const struct stp_node *n);

/* Write @value to the location of @n, such a node.  Returns what was written. */
ir_reg stp_lower_write(struct lower *l, struct stp_node *n, struct stp_node *value);
ir_reg stp_lower_match(struct lower *l, struct stp_node *n);

/* Lower the procedures that the clause calls, and those that they call. */
void stp_lower_procs(struct lower *l);

/* Find the functions of @p that call themselves. */
void stp_lower_find_recursive(struct stp_prog *p);

/* Initialise the variables @vars. */
void stp_lower_clear(struct lower *l, const struct stp_vars *vars);

/* Lower @tree.  NULL: reported. */
struct stp_code *stp_lower_prog(struct stp *stp, struct arena *a, struct diag *diag, struct stp_prog *tree, bool timing);

#endif
