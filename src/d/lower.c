#include "d/lower.h"

#include "base/arena.h"
#include "d/check.h"

struct ir_rec *lower_rec(struct lower *l)
{
	if (l->rec)
		return l->rec;
	l->rec = ir_rec_new(l->prog, l->b.clause);
	if (l->spec_id != IR_NO_REG)
		lower_spec_field(l);
	return l->rec;
}

void lower_rec_end(struct lower *l)
{
	if (l->rec)
		ir_emit(&l->b, l->rec, l->fields);
	l->rec = NULL;
}

void lower_next_action(struct lower *l)
{
	l->b.act++;
}

static void add_field(struct lower *l, ir_reg val, struct ir_slot slot)
{
	if (l->rec->nfields < IR_MAX_FIELDS) {
		l->fields[ir_rec_field(l->prog, l->rec, slot)] = val;
	} else if (!l->too_many) {
		l->too_many = true;
		check_unsupported(l->check, l->b.pos, "recording more than 1024 values in one clause",
				  "use several clauses for the probe, and members instead of a whole structure");
	}
}

void lower_field(struct lower *l, ir_reg val, const struct type *t)
{
	add_field(l, val, type_slot(t));
}

static void add_bits(struct lower *l, ir_reg bits, const struct type *t)
{
	add_field(l, bits, (struct ir_slot){ IR_INT, (uint8_t)type_size(t), false, IR_SHOW_FLOAT });
}

void lower_float_field_at(struct lower *l, const struct storage *o, const struct type *t)
{
	add_bits(l, lower_get(l, o, type_int(l->check->types, (unsigned int)type_size(t), false), 0, 0), t);
}

void lower_float_field(struct lower *l, struct d_node *n)
{
	struct storage o;

	if (n->ident && n->ident->kind == ID_BUILTIN) {	/* args[n] */
		add_bits(l, ir_arg(&l->b, (unsigned int)n->value), n->type);
		return;
	}
	if (n->kind == D_CALL) {	/* pyfloat() */
		add_bits(l, lower_expr(l, n), n->type);
		return;
	}
	lower_storage(l, n, &o);
	lower_float_field_at(l, &o, n->type);
}

static void lower_block(struct lower *l, const struct d_block *b);

/* Lower a branch of an if.  A speculation that begins in it ends with it. */
static void lower_branch(struct lower *l, const struct d_block *b, struct ir_block *end)
{
	struct ir_block *outer = l->spec_end;
	ir_reg id = l->spec_id;

	l->spec_end = end;
	lower_block(l, b);
	lower_rec_end(l);
	l->spec_id = id;
	l->spec_end = outer;
	ir_jmp(&l->b, end);
}

static void lower_if(struct lower *l, struct d_stmt *s)
{
	struct ir_block *yes = ir_block_new(&l->b), *no = ir_block_new(&l->b), *end = s->no ? ir_block_new(&l->b) : no;
	bool exits = l->exits;

	l->exits = false;
	lower_rec_end(l);
	ir_br(&l->b, lower_expr(l, s->expr), yes, no);
	ir_at(&l->b, yes);
	lower_branch(l, s->yes, end);
	if (s->no) {
		ir_at(&l->b, no);
		lower_branch(l, s->no, end);
	}
	ir_at(&l->b, end);
	if (l->exits)
		ir_gate(&l->b);
	l->exits = exits;
}

/* Aggregations are numbered in the order of their first use, so they are created there. */
static void lower_stmt(struct lower *l, struct d_stmt *s)
{
	struct d_node *n = s->expr;

	l->b.pos = s->pos;
	lower_next_action(l);
	if (s->kind == D_STMT_IF)
		lower_if(l, s);
	else if (n->kind == D_CALL && n->ident->kind == ID_ACTION)
		n->ident->action->lower(l, n);
	else if (n->kind == D_ASSIGN && check_is_agg_ref(n->lhs))
		lower_agg_assign(l, n);
	else
		lower_expr(l, n);
}

static void lower_block(struct lower *l, const struct d_block *b)
{
	for (size_t i = 0; i < b->n; i++)
		lower_stmt(l, b->stmts[i]);
}

static void lower_pred(struct lower *l, struct d_node *pred)
{
	struct ir_block *body, *end;
	int64_t always;
	ir_reg r;

	if (d_const(l->check->prog, pred, &always) && always)	/* /selected/ of a ready-made command, which selects all */
		return;
	body = ir_block_new(&l->b);
	end = ir_block_new(&l->b);
	l->b.pos = pred->pos;
	r = lower_expr(l, pred);
	ir_br(&l->b, r, body, end);
	ir_at(&l->b, end);
	ir_ret(&l->b);
	ir_at(&l->b, body);
}

static void lower_clause(struct lower *l, struct d_clause *cl)
{
	struct ir_clause *ic = ir_clause_new(l->prog, cl->pos);

	ic->descs = cl->descs;
	ic->ndescs = (uint32_t)cl->ndescs;
	l->rec = NULL;
	l->spec_id = IR_NO_REG;
	l->spec_end = NULL;
	ir_build(&l->b, l->prog, ic);
	if (cl->pred)
		lower_pred(l, cl->pred);
	if (!cl->body || !cl->body->n) {
		l->b.pos = cl->pos;
		lower_next_action(l);
		ir_rec_act(l->prog, lower_rec(l), IR_ACT_SHOWPROBE, cl->pos);
	} else {
		lower_block(l, cl->body);
	}
	lower_rec_end(l);
	ir_ret(&l->b);
}

struct ir_prog *lower_prog(struct check *c, uint32_t strsize)
{
	unsigned int errors = c->diag->errors;
	struct lower *l = arena_new_of(c->arena, struct lower);

	l->check = c;
	l->prog = ir_prog_new(c->arena, strsize);
	for (size_t i = 0; i < c->prog->nitems; i++)
		if (c->prog->items[i].kind == D_ITEM_CLAUSE)
			lower_clause(l, c->prog->items[i].clause);
	if (l->nodes > LOWER_MAX_NODES)
		check_error(c, l->endless, "D_UNKNOWN", "inlines of inlines: they are more than %d deep, or make a program of more "
			    "than %d operations", LOWER_MAX_DEPTH, LOWER_MAX_NODES);
	return c->diag->errors == errors ? l->prog : NULL;
}
