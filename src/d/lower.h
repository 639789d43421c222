/*
 * Lowering: a checked program becomes IR.
 *
 * An integer's register holds its value as its type has it, extended to 64 bits by the type's sign; a pointer's
 * an address; a string's the string.  A struct, union or array is represented by its address.
 *
 * A clause's data-recording actions share one record, which is written when the clause ends; their values
 * are taken where the actions stand.  A clause that records nothing writes none, but one without statements
 * writes a record that shows the probe.
 *
 * An if divides its clause: what stands before it, each branch, and what stands behind it have a record each, written at
 * its end, as if they were clauses of their own (which is what illumos makes of them).
 *
 * Actions are numbered from 1 as DTrace counts them in its error messages: a statement is one, and so is the
 * condition of an if, a printf() one
 * for each value, an aggregation one for itself, one for each key and one for its function.
 *
 * Files: lower.c clauses, lower_expr.c expressions, lower_mem.c memory, lower_obj.c objects, lower_act.c actions and
 * aggregations.
 */
#ifndef DTAP_D_LOWER_H
#define DTAP_D_LOWER_H

#include "d/ast.h"
#include "ir/ir.h"

struct check;
struct d_ident;

/* Inlines in inlines: what is beyond is reported, not lowered. */
enum { LOWER_MAX_NODES = 1 << 20, LOWER_MAX_DEPTH = 200 };

struct lower {
	struct check *check;		/* types, the arena, reports */
	struct ir_prog *prog;
	struct ir_build b;
	struct ir_block *end;		/* where a clause goes whose predicate is false */
	struct ir_rec *rec;		/* NULL until an action records something */
	ir_reg fields[IR_MAX_FIELDS];	/* what goes into it */
	ir_reg spec_id, spec_ok;	/* the speculation, and is it under way; IR_NO_REG: there is none */
	struct ir_var **spec_users, **spec_active;	/* by speculation; NULL until one is used */
	struct ir_var *token;		/* what strtok() has left, NULL until it is used */
	bool exits;			/* what is being lowered calls exit() */
	bool too_many;			/* more than IR_MAX_FIELDS: reported */
	unsigned int nodes;		/* lowered so far */
	unsigned int depth;		/* of inlines in inlines */
};

/* The program of what @c has checked without a mistake.  NULL: something does not fit the IR, reported. */
struct ir_prog *lower_prog(struct check *c, uint32_t strsize);

/* The value of @n: a register; IR_NO_REG for what has none (void). */
ir_reg lower_expr(struct lower *l, struct d_node *n);

/* The same as a value of type @to: converted as by assignment. */
ir_reg lower_as(struct lower *l, struct d_node *n, const struct type *to);

/* Convert the value @r of type @from to @to, both integers or pointers. */
ir_reg lower_convert(struct lower *l, ir_reg r, const struct type *from, const struct type *to);

/* @n, which is string, array of char, pointer to char, or an address, as a string. */
ir_reg lower_string(struct lower *l, struct d_node *n);

/* The string at the address @addr, of the traced process if @user. */
ir_reg lower_string_at(struct lower *l, ir_reg addr, bool user);

/* Is the value of @n an address in the traced process?  A variable's array, as a value, is a copy of ours. */
bool lower_is_user(struct d_node *n);

/* --- memory (lower_mem.c) ---------------------------------------------------------------------------- */

/* The address of the object that @n is in memory. */
ir_reg lower_addr(struct lower *l, struct d_node *n);

/* The value of @n, which is in memory: loaded, or its address for what is larger than a register. */
ir_reg lower_load(struct lower *l, struct d_node *n);

/*
 * A bit-field of @bits bits that begins @off bits into the byte at @addr, read with @op.  The bytes it touches are read
 * one by one when no load of 1, 2, 4 or 8 covers exactly them: what lies behind may not be there.
 */
ir_reg lower_bits(struct lower *l, enum ir_op op, ir_reg addr, unsigned int off, unsigned int bits, bool sign);

/*
 * Store the low @width bytes of @v at @addr, or the @bits bits that begin @off bits into the byte there.  Memory that is not
 * the clause's own is a fault.
 */
void lower_store(struct lower *l, ir_reg addr, ir_reg v, unsigned int width);
void lower_store_bits(struct lower *l, ir_reg addr, unsigned int off, unsigned int bits, ir_reg v);

/* @ptr + @sign * @i elements of what the type @t points to. */
ir_reg lower_step(struct lower *l, ir_reg ptr, const struct type *t, ir_reg i, int sign);

/* --- objects (lower_obj.c) --------------------------------------------------------------------------- */

/* A struct, union, array or something in one: in memory, or (id) in a variable. */
struct object {
	bool user;			/* the memory is the traced process's */
	ir_reg addr;
	struct d_ident *id;
	ir_reg keys[IR_MAX_KEYS];	/* of an element of an associative array */
	uint64_t off;			/* bytes from the start of the variable, and as many more: */
	ir_reg dyn;			/* or IR_NO_REG */
};

/* Where @n is, a variable's part or in memory. */
void lower_object(struct lower *l, struct d_node *n, struct object *o);

/* What is @bytes behind its start. */
struct object lower_part(struct lower *l, const struct object *o, uint64_t bytes);

/* A scalar of type @t at bit @bit of @o, @bits wide if it is a bit-field, else 0: read and written. */
ir_reg lower_get(struct lower *l, const struct object *o, const struct type *t, uint64_t bit, unsigned int bits);
void lower_put(struct lower *l, const struct object *o, const struct type *t, uint64_t bit, unsigned int bits, ir_reg v);

/* Can it be added to in one step?  Then do so; the result is the value before. */
bool lower_adds(const struct object *o, unsigned int bits);
ir_reg lower_add(struct lower *l, const struct object *o, uint64_t bit, ir_reg v);

/* A string in it, at its start. */
ir_reg lower_get_string(struct lower *l, const struct object *o);
void lower_put_string(struct lower *l, const struct object *o, ir_reg v);

/* @to = @from, of the same type. */
void lower_assign_object(struct lower *l, const struct object *to, struct d_node *from);

/* Its address, or that of a copy of the variable. */
ir_reg lower_in_memory(struct lower *l, const struct object *o, const struct type *t);

/* --- statements (lower.c, lower_act.c) --------------------------------------------------------------- */

/* The record that the actions at hand share, made when first asked for; it is written, and the next one is another. */
struct ir_rec *lower_rec(struct lower *l);
void lower_rec_end(struct lower *l);

/* The next action has the next number. */
void lower_next_action(struct lower *l);

/* Record @val, which is of type @t, as the next field of the action added last. */
void lower_field(struct lower *l, ir_reg val, const struct type *t);

/* The same of a floating-point number, an argument's or of type @t at @o: its bits. */
void lower_float_field(struct lower *l, struct d_node *n);
void lower_float_field_at(struct lower *l, const struct object *o, const struct type *t);

/* The actions of actions.def: their records and fields. */
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

/* The number that stack(), usym() or one of their kind gives. */
ir_reg lower_stack_value(struct lower *l, struct d_node *call);

/* The subroutine that @call calls with the values @args, made of other operations (lower_subr.c). */
ir_reg lower_subr(struct lower *l, struct d_node *call, const ir_reg *args);

/* speculation(); a new record's first field; the end of a record, which may be speculative (lower_spec.c). */
ir_reg lower_speculation(struct lower *l);
void lower_spec_field(struct lower *l);
void lower_spec_end(struct lower *l);

/* The keys of @n by the signature of @id into @keys[IR_MAX_KEYS]. */
void lower_keys(struct lower *l, const struct d_ident *id, struct d_node *n, ir_reg *keys);

/* The IR's objects for an identifier. */
struct ir_var *lower_var(struct lower *l, struct d_ident *id);
struct ir_agg *lower_agg(struct lower *l, struct d_ident *id);

#endif
