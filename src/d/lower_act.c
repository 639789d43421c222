/*
 * Actions and aggregations.
 */
#include "d/lower.h"

#include <signal.h>
#include <string.h>

#include "base/arena.h"
#include "d/check.h"

/* The type that a value has when it is recorded: arrays of char are strings, other arrays addresses. */
static const struct type *recorded_type(struct lower *l, const struct d_node *n)
{
	if (type_is_char_array(n->type))
		return l->check->t_string;
	if (type_is_array(n->type))
		return type_ptr(l->check->types, type_target(n->type));
	return n->type;
}

static void record(struct lower *l, struct d_node *n)
{
	const struct type *t = recorded_type(l, n);

	if (type_is_float(n->type))
		lower_float_field(l, n);
	else
		lower_field(l, type_is_string(t) ? lower_text(l, n) : lower_as(l, n, t), t);
}

static void format(struct lower *l, struct d_node *call, enum ir_act_kind kind)
{
	struct ir_rec *rec = lower_rec(l);
	struct ir_act *act = ir_rec_act(l->prog, rec, kind, call->pos);

	act->fmt = ((const struct printed *)call->aux)->fmt;
	for (size_t i = 1; i < call->nargs; i++) {
		if (i > 1)
			lower_next_action(l);
		record(l, call->args[i]);
	}
}

void lower_printf(struct lower *l, struct d_node *call)
{
	format(l, call, IR_ACT_PRINTF);
}

void lower_command(struct lower *l, struct d_node *call)
{
	if (!call->nargs)
		ir_rec_act(l->prog, lower_rec(l), IR_ACT_FTRUNCATE, call->pos);
	else
		format(l, call, (enum ir_act_kind)call->ident->action->what);
}

/* raise(signal), stop() */
void lower_signal(struct lower *l, struct d_node *call)
{
	ir_reg sig = call->nargs ? lower_as(l, call->args[0], l->check->t_int) : ir_const(&l->b, SIGSTOP);

	ir_call(&l->b, IR_FN_SIGNAL, &sig, 1);
	ir_rec_act(l->prog, lower_rec(l), IR_ACT_SHOWPROBE, call->pos);
}

void lower_setopt(struct lower *l, struct d_node *call)
{
	ir_rec_act(l->prog, lower_rec(l), IR_ACT_SETOPT, call->pos);
	for (size_t i = 0; i < call->nargs; i++)
		record(l, call->args[i]);
}

/* Record memory as fields: one for every eight bytes, then the rest. */
static void lower_bytes(struct lower *l, ir_reg addr, bool user, uint64_t bytes)
{
	unsigned int width;

	for (uint64_t at = 0; at < bytes; at += width) {
		ir_reg from = ir_op2(&l->b, IR_ADD, addr, ir_const(&l->b, (int64_t)at));

		width = bytes - at >= 8 ? 8 : bytes - at >= 4 ? 4 : bytes - at >= 2 ? 2 : 1;
		lower_field(l, ir_load(&l->b, user ? IR_ULOAD : IR_LOAD, from, width, false),
			    type_int(l->check->types, width, false));
	}
}

void lower_trace(struct lower *l, struct d_node *call)
{
	struct d_node *n = call->args[0];
	struct storage o;

	if (!check_traced_as_bytes(n)) {
		ir_rec_act(l->prog, lower_rec(l), IR_ACT_TRACE, call->pos);
		record(l, n);
		if (type_is_char_array(n->type) && type_size(n->type) <= TRACED_MAX && (check_root(n) || !n->ident)) {
			/* Whether it is text is seen when it is printed. */
			lower_storage(l, n, &o);
			lower_bytes(l, lower_in_memory(l, &o, n->type), o.user, type_size(n->type));
		}
		return;
	}
	ir_rec_act(l->prog, lower_rec(l), IR_ACT_TRACEMEM, call->pos);
	lower_storage(l, n, &o);
	lower_field(l, ir_const(&l->b, -1), l->check->t_int64);
	lower_bytes(l, lower_in_memory(l, &o, n->type), o.user, type_size(n->type));
}

void lower_tracemem(struct lower *l, struct d_node *call)
{
	struct d_node *n = call->args[0];
	ir_reg addr, size = ir_const(&l->b, -1);
	int64_t bytes = 0;

	ir_rec_act(l->prog, lower_rec(l), IR_ACT_TRACEMEM, call->pos);
	d_const(l->check->prog, call->args[1], &bytes);
	addr = lower_expr(l, n);
	if (call->nargs > 2)
		size = lower_as(l, call->args[2], l->check->t_int64);
	lower_field(l, size, l->check->t_int64);
	lower_bytes(l, addr, lower_is_user(n), (uint64_t)bytes);
}

static ir_reg stack_value(struct lower *l, struct d_node *call)
{
	const struct {
		enum ir_stack whose, bare;	/* bare: without the frames of interpreters */
	} stacks[] = {
		[STACK_KERNEL] = { IR_STACK_KERNEL, IR_STACK_KERNEL }, [STACK_USER] = { IR_STACK_MIXED, IR_STACK_USER },
		[STACK_JAVA] = { IR_STACK_MIXED, IR_STACK_USER }, [STACK_PYTHON] = { IR_STACK_PYTHON, IR_STACK_PYTHON },
	}, *s = &stacks[call->ident->action->what];
	int64_t strings = 1;
	enum ir_stack whose;
	ir_reg args[2];
	int details = 0;

	if (call->nargs > 1 && call->args[1]->kind != D_STR)
		d_const(l->check->prog, call->args[1], &strings);
	whose = strings ? s->whose : s->bare;
	if (whose == IR_STACK_PYTHON && call->nargs > 1)
		details = check_pystack_detail(call->args[1]->str);
	if (details & PYSTACK_INSTRUCTION)
		whose = IR_STACK_INSTRUCTIONS;
	else if (whose == IR_STACK_PYTHON && (details & (PYSTACK_LINE | PYSTACK_FUNCTION) ? details & PYSTACK_FUNCTION : l->keys))
		whose = IR_STACK_FUNCTIONS;
	args[0] = ir_const(&l->b, whose);
	args[1] = ir_const(&l->b, check_stack_frames(l->check, call));
	return ir_call(&l->b, details & PYSTACK_ASYNC ? IR_FN_AWAITERS : IR_FN_STACK, args, 2);
}

static ir_reg symbol_value(struct lower *l, struct d_node *call)
{
	ir_reg args[2] = { ir_const(&l->b, call->ident->action->what == ADDR_USER), lower_expr(l, call->args[0]) };

	return ir_call(&l->b, IR_FN_ADDR, args, 2);
}

ir_reg lower_action_value(struct lower *l, struct d_node *call)
{
	return call->ident->action->what >= ADDR_KERNEL ? symbol_value(l, call) : stack_value(l, call);
}

void lower_stack(struct lower *l, struct d_node *call)
{
	ir_rec_act(l->prog, lower_rec(l), IR_ACT_STACK, call->pos);
	lower_field(l, stack_value(l, call), call->type);
}

void lower_symbol(struct lower *l, struct d_node *call)
{
	ir_rec_act(l->prog, lower_rec(l), IR_ACT_STACK, call->pos);
	lower_field(l, symbol_value(l, call), call->type);
}

void lower_exit(struct lower *l, struct d_node *call)
{
	ir_rec_act(l->prog, lower_rec(l), IR_ACT_EXIT, call->pos);
	lower_field(l, lower_as(l, call->args[0], l->check->t_int), l->check->t_int);
	ir_exiting(&l->b, true);
	l->exits = true;
}

/* Set the aggregations among the arguments of @call from @first on. */
static void set_aggs(struct lower *l, struct ir_act *act, struct d_node *call, size_t first)
{
	act->aggs = arena_alloc(l->prog->arena, call->nargs * sizeof(*act->aggs));
	for (size_t i = first; i < call->nargs && call->args[i]->kind == D_AGG; i++) {
		if (i > first && act->naggs)
			lower_next_action(l);
		act->aggs[act->naggs++] = lower_agg(l, call->args[i]->ident);
	}
}

void lower_printa(struct lower *l, struct d_node *call)
{
	struct ir_act *act = ir_rec_act(l->prog, lower_rec(l), IR_ACT_PRINTA, call->pos);

	act->fmt = ((const struct printed *)call->aux)->fmt;
	set_aggs(l, act, call, act->fmt ? 1 : 0);
}

void lower_aggact(struct lower *l, struct d_node *call)
{
	enum ir_act_kind kind = (enum ir_act_kind)call->ident->action->what;

	set_aggs(l, ir_rec_act(l->prog, lower_rec(l), kind, call->pos), call, 0);
	if (call->nargs > 1 || kind == IR_ACT_TRUNC)
		lower_next_action(l);
	if (call->nargs > 1)
		record(l, call->args[1]);
}

struct ir_agg *lower_agg(struct lower *l, struct d_ident *id)
{
	struct ir_agg *g = id->agg;

	if (g)
		return g;
	g = id->agg = ir_agg_new(l->prog, id->name, id->fn->fn);
	g->nkeys = (uint32_t)id->nkeys;
	for (size_t i = 0; i < id->nkeys; i++)
		g->keys[i] = type_slot(id->keys[i]);
	for (int i = 0; i < 4; i++)
		g->param[i] = id->param[i];
	g->sign = id->sign;
	g->pos = id->pos;
	return g;
}

/* @a[keys] = f(value, parameters, weight) */
void lower_agg_assign(struct lower *l, struct d_node *n)
{
	struct d_node *ref = n->lhs, *call = n->rhs;
	const struct aggfunc *f = call->ident->aggfunc;
	struct ir_agg *g = lower_agg(l, ref->ident);
	ir_reg args[2 + IR_MAX_KEYS], *keys = args;

	if (call->nargs)
		keys++;
	if (f->weight)
		keys++;
	lower_next_action(l);		/* the aggregation itself counts as DTrace's first action */
	for (size_t i = 0; i < g->nkeys; i++) {
		keys[i] = lower_key(l, ref->args[i], ref->ident->keys[i]);
		lower_next_action(l);
	}
	if (call->nargs > 1U + f->nparams) {
		args[1] = lower_expr(l, call->args[1 + f->nparams]);
		lower_next_action(l);
	} else if (f->weight) {
		args[1] = ir_const(&l->b, 1);
	}
	if (call->nargs)
		args[0] = lower_expr(l, call->args[0]);
	ir_agg_add(&l->b, g, args);
}
