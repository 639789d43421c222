/*
 * Lowering: a checked program becomes IR.
 *
 * An integer's register holds its value, extended to 64 bits by the type's sign; a pointer's holds an address; a
 * string's the string.  A struct, union or array is represented by its address.
 *
 * A clause's data-recording actions share one record, which is written when the clause ends; the values are computed
 * where the actions stand.  A clause that records nothing writes no record; a clause without statements writes one
 * that shows the probe.
 *
 * An if divides its clause: the part before it, each branch, and the part after it have a record each, written at the
 * part's end, as if they were separate clauses (illumos makes them clauses).
 *
 * Actions are numbered from 1 as DTrace counts them in its error messages: a statement is one, and so is the
 * condition of an if, a printf() one
 * for each value, an aggregation one for itself, one for each key and one for its function.
 *
 * Files: lower.c clauses, lower_expr.c expressions, lower_mem.c memory, lower_storage.c what is stored, lower_act.c actions and
 * aggregations.
 */
#ifndef DTAP_D_LOWER_H
#define DTAP_D_LOWER_H

#include "d/ast.h"
#include "ir/ir.h"

struct check;
struct d_ident;

/* Limits for nested inlines; more are reported, not lowered. */
enum { LOWER_MAX_NODES = 1 << 20, LOWER_MAX_DEPTH = 200 };

struct lower {
	struct check *check;		/* types, the arena, reports */
	struct ir_prog *prog;
	struct ir_build b;
	struct ir_block *end;		/* jumped to when the predicate is false */
	struct ir_rec *rec;		/* NULL until an action records something */
	ir_reg fields[IR_MAX_FIELDS];	/* its fields */
	ir_reg spec_id;			/* the speculation's id; IR_NO_REG: none */
	struct ir_block *spec_end;	/* the end of a branch that speculates, or NULL */
	struct ir_var **spec_users, **spec_active;	/* by speculation; NULL until one is used */
	struct ir_var *token;		/* the rest of strtok()'s string; NULL until strtok() is used */
	bool exits;			/* the clause calls exit() */
	bool too_many;			/* more than IR_MAX_FIELDS: reported */
	unsigned int nodes;		/* nodes lowered so far */
	struct src_pos endless;		/* where there were too many, or their inlines too deep */
	unsigned int depth;		/* nesting of inlines */
	unsigned int keys;		/* nesting in keys of arrays and aggregations */
	bool ask_null;			/* whether the next string is NULL is of interest */
	ir_reg null;			/* 1: the last string of interest is NULL, else 0; IR_NO_REG: it is not */
};

/* Lower the program that @c has checked without a mistake.  NULL: something does not fit the IR (reported). */
struct ir_prog *lower_prog(struct check *c, uint32_t strsize);

/* Lower @n.  Returns the register of its value; IR_NO_REG for void. */
ir_reg lower_expr(struct lower *l, struct d_node *n);

/* The same, converted to type @to as by assignment. */
ir_reg lower_as(struct lower *l, struct d_node *n, const struct type *to);

/* The same for a key of an array or aggregation. */
ir_reg lower_key(struct lower *l, struct d_node *n, const struct type *to);

/* Convert the value @r of type @from to @to, both integers or pointers. */
ir_reg lower_convert(struct lower *l, ir_reg r, const struct type *from, const struct type *to);

/* The string of @n, which is a string, array of char, pointer to char, or an address. */
ir_reg lower_string(struct lower *l, struct d_node *n);

/* The same where the string is read: NULL is a fault there. */
ir_reg lower_text(struct lower *l, struct d_node *n);

/* The fault of a read at address 0, if @null, which IR_NO_REG never is. */
void lower_fault_null(struct lower *l, ir_reg null);

/* The string at the address @addr, in the traced process if @user. */
ir_reg lower_string_at(struct lower *l, ir_reg addr, bool user);

/*
 * Is the value of @n an address in the traced process?  (That of an array variable is not: it is copied to scratch
 * memory.)
 */
bool lower_is_user(struct d_node *n);

/* --- memory (lower_mem.c) ---------------------------------------------------------------------------- */

/* The address of the object @n, which is in memory. */
ir_reg lower_addr(struct lower *l, struct d_node *n);

/* The value of @n, which is in memory: loaded, or its address for what is larger than a register. */
ir_reg lower_load(struct lower *l, struct d_node *n);

/*
 * Load a bit-field of @bits bits that begins @off bits into the byte at @addr, with @op.  Its bytes are read one by
 * one unless a load of 1, 2, 4 or 8 bytes covers exactly them: memory behind them may not be readable.
 */
ir_reg lower_bits(struct lower *l, enum ir_op op, ir_reg addr, unsigned int off, unsigned int bits, bool sign);

/*
 * Store the low @width bytes of @v at @addr, or @bits bits of it, from bit @off of the byte there on.  A store to
 * memory that is not the clause's own is a fault.
 */
void lower_store(struct lower *l, ir_reg addr, ir_reg v, unsigned int width);
void lower_store_bits(struct lower *l, ir_reg addr, unsigned int off, unsigned int bits, ir_reg v);

/* Load what is at @addr, outside of the traced process: a @t, or @bits bits of it from bit @bit on (0: all of it). */
ir_reg lower_load_at(struct lower *l, ir_reg addr, const struct type *t, unsigned int bit, unsigned int bits);

/* lower_store of a @t, or of @bits bits of it from bit @bit on (0: all of it); @addr may be in a variable. */
void lower_store_at(struct lower *l, ir_reg addr, const struct type *t, unsigned int bit, unsigned int bits, ir_reg v);

/* @ptr + @sign * @i elements of the type that @t points to. */
ir_reg lower_step(struct lower *l, ir_reg ptr, const struct type *t, ir_reg i, int sign);

/* --- storage (lower_storage.c) -------------------------------------------------------------------------- */

/* The location of a struct, union or array, or of a part of one: in memory, or in the variable id. */
struct storage {
	bool user;			/* in memory of the traced process */
	ir_reg addr;
	struct d_ident *id;
	ir_reg keys[IR_MAX_KEYS];	/* of an element of an associative array */
	uint64_t off;			/* bytes from the start of the variable */
	ir_reg dyn;			/* a register with a further offset, or IR_NO_REG */
};

/* Set @o to the location of @n. */
void lower_storage(struct lower *l, struct d_node *n, struct storage *o);

/* The part of @o that begins @bytes bytes behind its start. */
struct storage lower_part(struct lower *l, const struct storage *o, uint64_t bytes);

/* Read or write a scalar of type @t at bit @bit of @o; @bits: the width of a bit-field, else 0. */
ir_reg lower_get(struct lower *l, const struct storage *o, const struct type *t, uint64_t bit, unsigned int bits);
void lower_put(struct lower *l, const struct storage *o, const struct type *t, uint64_t bit, unsigned int bits, ir_reg v);

/* lower_adds: can a value be added to it in one step?  lower_add does so and returns the value before. */
bool lower_adds(const struct storage *o, unsigned int bits);
ir_reg lower_add(struct lower *l, const struct storage *o, uint64_t bit, ir_reg v);

/* Read or write the string at its start. */
ir_reg lower_get_string(struct lower *l, const struct storage *o);
void lower_put_string(struct lower *l, const struct storage *o, ir_reg v);

/* Copy @from to @to, which has the same type. */
void lower_assign_storage(struct lower *l, const struct storage *to, const struct type *t, struct d_node *from);

/* The address of the object, or of a copy if it is in a variable. */
ir_reg lower_in_memory(struct lower *l, const struct storage *o, const struct type *t);

/* --- statements (lower.c, lower_act.c) --------------------------------------------------------------- */

/*
 * lower_rec: the current record, created when first needed.  lower_rec_end: write it; the next call of lower_rec
 * starts another.
 */
struct ir_rec *lower_rec(struct lower *l);
void lower_rec_end(struct lower *l);

/* Begin the next action, which gets the next number. */
void lower_next_action(struct lower *l);

/* Record @val of type @t as the next field of the last action. */
void lower_field(struct lower *l, ir_reg val, const struct type *t);

/* The same for a floating-point number, as its bits. */
void lower_float_field(struct lower *l, struct d_node *n);
void lower_float_field_at(struct lower *l, const struct storage *o, const struct type *t);

/* Lower the actions of actions.def: their records and fields. */
void lower_printf(struct lower *l, struct d_node *call);
void lower_printa(struct lower *l, struct d_node *call);
void lower_trace(struct lower *l, struct d_node *call);
void lower_print(struct lower *l, struct d_node *call);
void lower_tracemem(struct lower *l, struct d_node *call);
void lower_stack(struct lower *l, struct d_node *call);
void lower_symbol(struct lower *l, struct d_node *call);
void lower_command(struct lower *l, struct d_node *call);
void lower_signal(struct lower *l, struct d_node *call);
void lower_setopt(struct lower *l, struct d_node *call);
void lower_spec(struct lower *l, struct d_node *call);
void lower_exit(struct lower *l, struct d_node *call);
void lower_aggact(struct lower *l, struct d_node *call);

/* @name[keys] = aggfunc(...). */
void lower_agg_assign(struct lower *l, struct d_node *n);

/* The value of stack(), usym() or a similar action. */
ir_reg lower_action_value(struct lower *l, struct d_node *call);

/*
 * Lower a subroutine that is composed of other operations (lower_subr.c); @args are the values of @call's arguments.
 */
ir_reg lower_subr(struct lower *l, struct d_node *call, const ir_reg *args);

/* speculation(); the first field of a record (lower_spec.c). */
ir_reg lower_speculation(struct lower *l);
void lower_spec_field(struct lower *l);

/*
 * The number of keys that @id's array has in the IR, and (@slots not NULL) their types: a struct or union is as many words
 * as it is long.
 */
uint32_t lower_key_slots(const struct d_ident *id, struct ir_slot *slots);

/* Lower the keys of @n, by the signature of @id, into @keys[IR_MAX_KEYS]. */
void lower_keys(struct lower *l, const struct d_ident *id, struct d_node *n, ir_reg *keys);

/* The IR's variables and maps for an identifier. */
struct ir_var *lower_var(struct lower *l, struct d_ident *id);
struct ir_agg *lower_agg(struct lower *l, struct d_ident *id);

#endif
