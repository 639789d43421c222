#include "stp/lower.h"

#include <assert.h>
#include <limits.h>
#include <stdarg.h>
#include <string.h>

#include "abi/record.h"
#include "base/arena.h"
#include "base/strbuf.h"
#include "ir/facts.h"
#include "lang/diag.h"
#include "stp/lower_func.h"


/* --- reports ----------------------------------------------------------------------------------------- */

void stp_lower_refuse(struct lower *l, const struct stp_node *n, const char *hint, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	diag_error(l->diag, n->pos, "S_UNSUPPORTED", "semantic error: %s: %s", arena_vprintf(l->arena, fmt, ap),
		   n->what ? n->what : "keyword");
	va_end(ap);
	if (hint)
		diag_hint(l->diag, "%s", hint);
}

void stp_lower_near(struct lower *l, const char *what, struct src_pos pos)
{
	struct stp_code *c = l->code;
	const struct ir_near *last = &c->nears[c->nnears - 1];

	if (last->what != what || last->pos.line != pos.line || last->pos.col != pos.col ||
	    last->pos.src != pos.src) {
		c->nears = arena_grow(l->arena, c->nears, &l->nears_cap, c->nnears, sizeof(*c->nears));
		c->nears[c->nnears++] = (struct ir_near){ .what = what, .pos = pos };
	}
	l->b.act = c->nnears - 1;
	l->b.pos = pos;
}

ir_reg stp_lower_dummy(struct lower *l, enum stp_type type)
{
	return type == STP_STRINGS ? stp_lower_str(l, "") : stp_lower_const(l, 0);
}

struct ir_slot stp_lower_slot(enum stp_type type)
{
	if (type == STP_STRINGS)
		return (struct ir_slot){ .type = IR_STR };
	return (struct ir_slot){ .type = IR_INT, .width = 8, .sign = true };
}

/* --- clauses ----------------------------------------------------------------------------------------- */

static const char *point_text(struct lower *l, const struct stp_point *p)
{
	struct stp_point bare = *p;
	struct strbuf b = {0};
	const char *ret;

	bare.optional = bare.sufficient = false;
	bare.cond = NULL;
	stp_dump_point(&b, &bare);
	ret = arena_strdup(l->arena, strbuf_str(&b));
	strbuf_fini(&b);
	return ret;
}

static bool is_ordered(enum stp_point_kind kind)
{
	return kind == STP_P_BEGIN || kind == STP_P_END || kind == STP_P_ERROR;
}

/* Does the tracer fire it?  Timers are fired there. */
static bool is_tracer(enum stp_point_kind kind)
{
	return (kind >= STP_P_TIMER_S && kind <= STP_P_TIMER_JIFFIES) || kind == STP_P_READ;
}

static struct stp_clause *new_clause(struct lower *l, struct src_pos pos, const struct stp_handler *h,
				     enum stp_point_kind kind)
{
	struct ir_clause *ic = ir_clause_new(l->prog, pos);
	struct stp_clause *c = &l->code->clauses[ic->id];
	const struct stp_node *arg = h ? h->point->comps[0].arg : NULL;

	c->code = ic;
	c->handler = h;
	c->kind = kind;
	c->order = !h ? INT64_MIN : is_ordered(kind) && arg ? arg->value : 0;
	c->pp = h ? point_text(l, h->point) : "begin";
	ic->runs = is_ordered(kind) || kind == STP_P_NEVER ? IR_ALONE : is_tracer(kind) ? IR_TRACER : IR_EVENT;
	ir_build(&l->b, l->prog, ic);
	l->b.pos = pos;
	l->handler = h;
	l->clause = c;
	l->loop = NULL;
	l->tries = 0;
	l->call = NULL;
	l->procs = NULL;
	l->procs_tail = &l->procs;
	l->catches = NULL;
	l->statements = 0;
	return c;
}

static bool has_value(const struct stp_node *init)
{
	return init && (init->kind == STP_NUM ? init->value != 0 : init->str_len != 0);
}

/* If a global has an initial value, add a BEGIN before all others. */
static void lower_inits(struct lower *l)
{
	bool made = false;

	for (struct stp_var *v = l->tree->globals.first; v; v = v->next) {
		if (!has_value(v->init) || (!v->reads && !v->writes))
			continue;
		if (!made)
			new_clause(l, v->pos, NULL, STP_P_BEGIN);
		made = true;
		ir_vst(&l->b, stp_lower_var(l, v), stp_lower_expr(l, v->init));
	}
	if (made)
		ir_ret(&l->b);
}

/* --- errors ------------------------------------------------------------------------------------------ */

/*
 * Can @c have a fault that must be caught?  A TRY itself faults only inside of procedures, which ENTER calls; an
 * unreadable argument of the probe is not a fault of the handler.
 */
static bool clause_faults(const struct ir_clause *c)
{
	struct ir_walk w = ir_walk_clause(c);

	for (const struct ir_insn *i; (i = ir_next(&w));)
		if (ir_may_fault(i) && i->op != IR_TRY && !(ir_effects(i) & IR_STEADY))
			return true;
	return false;
}

/* Remove the TRYs of a clause that never faults. */
static void drop_tries(struct ir_clause *c)
{
	for (uint32_t b = 0; b < c->nblocks; b++) {
		struct ir_block *block = c->blocks[b];
		uint32_t n = 0;

		for (uint32_t i = 0; i < block->n; i++) {
			if (block->insns[i].op == IR_TRY) {
				block->insns[i].op = IR_JMP;
				block->insns[i].target[0] = block->insns[i].target[1];
			}
			if (block->insns[i].op != IR_ENDTRY)
				block->insns[n++] = block->insns[i];
		}
		block->n = n;
	}
}

/* Report the error that ends the handler, and end the session if there were too many errors. */
static void lower_failure(struct lower *l)
{
	struct ir_block *text = ir_block_new(&l->b), *none = ir_block_new(&l->b), *both = ir_block_new(&l->b);
	struct ir_block *on = ir_block_new(&l->b), *stop = ir_block_new(&l->b);
	ir_reg f[4] = { ir_caught(&l->b, IR_CAUGHT_KIND), ir_caught(&l->b, IR_CAUGHT_VALUE),
			ir_caught(&l->b, IR_CAUGHT_ACT), ir_reg_new(&l->b, IR_STR) };

	ir_br(&l->b, ir_op2(&l->b, IR_EQ, f[0], stp_lower_const(l, ABI_FAULT_ERROR)), text, none);
	ir_at(&l->b, text);
	ir_mov(&l->b, f[3], ir_caughtstr(&l->b));
	ir_jmp(&l->b, both);
	ir_at(&l->b, none);
	ir_mov(&l->b, f[3], stp_lower_str(l, ""));
	ir_jmp(&l->b, both);
	ir_at(&l->b, both);
	stp_lower_record(l, IR_ACT_ERROR, NULL, f, 4, l->b.pos);
	stp_lower_end_time(l);
	ir_br(&l->b, ir_op2(&l->b, IR_SLT, ir_failed(&l->b), stp_lower_const(l, stp_get_limit(l->stp, STP_MAXERRORS))),
	      on, stop);
	ir_at(&l->b, stop);
	ir_exiting(&l->b, false);
	ir_ret(&l->b);
	ir_at(&l->b, on);
	ir_ret(&l->b);
}

/* --- counting statements ----------------------------------------------------------------------------- */

struct loops {
	unsigned int number;
	bool found;
};

static void find_loops(void *ctx, struct stp_stmt **child);

static void find_loops_node(void *ctx, struct stp_node **child)
{
	struct loops *w = ctx;

	stp_each_node(*child, find_loops_node, ctx);
	if ((*child)->kind != STP_CALL)
		return;
	for (struct stp_func *f = (*child)->func; f; f = f->overload) {
		w->found |= f->recursive;
		if (f->mark == w->number)
			continue;
		f->mark = w->number;
		find_loops(ctx, &f->body);
	}
}

static void find_loops(void *ctx, struct stp_stmt **child)
{
	struct stp_stmt *s = *child;
	struct loops *w = ctx;

	w->found |= s->kind == STP_S_FOR || s->kind == STP_S_FOREACH;
	stp_each_expr(s, find_loops_node, ctx);
	stp_each_stmt(s, find_loops, ctx);
}

/* How many statements @h may execute; INT64_MAX: no limit. */
static int64_t budget(const struct lower *l, const struct stp_handler *h)
{
	int64_t n = stp_get_limit(l->stp, STP_MAXACTION), own = stp_get_limit(l->stp, STP_MAXACTION_INTERRUPTIBLE);

	if (h->kind == STP_P_READ)
		return INT64_MAX;	/* it is no handler of the script */
	if (is_ordered((enum stp_point_kind)h->kind) && n <= INT32_MAX)
		n = own ? own : n * 10;
	/* The kernel ends loops long before that. */
	return n > INT32_MAX ? INT64_MAX : n;
}

/* Are @h's statements counted?  Those of a handler without loops only if it could reach the limit. */
static bool is_counted(struct lower *l, const struct stp_handler *h)
{
	struct loops w = { .number = UINT_MAX - l->walks++ };
	int64_t n = budget(l, h);

	for (size_t i = 0; i < h->nblocks; i++)
		find_loops(&w, &h->blocks[i]);
	return n != INT64_MAX && (w.found || n < 500);
}

/* --- handlers ---------------------------------------------------------------------------------------- */

static void lower_conds(struct lower *l, const struct stp_handler *h)
{
	struct ir_block *body, *end;

	for (size_t i = 0; i < h->nconds; i++) {
		body = ir_block_new(&l->b);
		end = ir_block_new(&l->b);
		stp_lower_cond(l, h->conds[i], body, end);
		ir_at(&l->b, end);
		ir_endtry(&l->b);
		ir_ret(&l->b);
		ir_at(&l->b, body);
	}
}

static void lower_handler(struct lower *l, const struct stp_handler *h)
{
	struct ir_block *body, *caught;
	uint32_t procs;

	new_clause(l, h->pos, h, (enum stp_point_kind)h->kind);
	l->counting = is_counted(l, h);
	if (l->began)
		ir_vst(&l->b, l->began, ir_builtin(&l->b, IR_B_NOW));
	body = ir_block_new(&l->b);
	caught = ir_block_new(&l->b);
	ir_try(&l->b, caught, body);
	l->tries = 1;
	ir_at(&l->b, body);
	lower_conds(l, h);
	if (l->counting)
		ir_budget(&l->b, budget(l, h) - 1);	/* SystemTap fails when the counter becomes 0 */
	stp_lower_find_late(h);
	stp_lower_clear(l, &h->locals);
	if (l->tokens)
		ir_vst(&l->b, l->tokens, stp_lower_str(l, ""));
	if (l->groups)
		ir_vst(&l->b, l->groups, stp_lower_const(l, 0));
	for (size_t i = 0; i < h->nblocks; i++)
		stp_lower_stmt(l, h->blocks[i]);
	stp_lower_count(l, 0, l->last_what, l->last_pos, true);
	ir_endtry(&l->b);
	stp_lower_end_time(l);
	ir_ret(&l->b);
	procs = l->code->nnears;
	stp_lower_procs(l);
	stp_lower_messages(l, procs);
	ir_at(&l->b, caught);
	lower_failure(l);
	if (!clause_faults(l->clause->code))
		drop_tries(l->clause->code);
}

/* Which functions with a state does the script call? */
struct remembering {
	bool tokens, groups;
};

static void find_remembering_node(void *ctx, struct stp_node **child)
{
	const struct stp_builtin *b = (*child)->kind == STP_CALL ? (*child)->builtin : NULL;
	struct remembering *r = ctx;

	r->tokens |= b && b->lower == stp_func_tokenize;
	r->groups |= b && (b->lower == stp_func_matched || b->lower == stp_func_ngroups);
	stp_each_node(*child, find_remembering_node, ctx);
}

static void find_remembering(void *ctx, struct stp_stmt **child)
{
	stp_each_expr(*child, find_remembering_node, ctx);
	stp_each_stmt(*child, find_remembering, ctx);
}

static void make_memories(struct lower *l)
{
	struct remembering r = {0};

	for (struct stp_handler *h = l->tree->handlers; h; h = h->next)
		for (size_t i = 0; i < h->nblocks; i++)
			find_remembering(&r, &h->blocks[i]);
	for (struct stp_func *f = l->tree->funcs; f; f = f->next)
		find_remembering(&r, &f->body);
	if (r.tokens)
		l->tokens = ir_var_new(l->prog, "tokenize", IR_LOCAL, stp_lower_slot(STP_STRINGS));
	if (r.groups)
		l->groups = ir_var_new(l->prog, "matched", IR_LOCAL, stp_lower_slot(STP_LONG));
}

/* The time of MAXTRYLOCK attempts with TRYLOCKDELAY us in between, at most a second. */
static uint64_t lock_wait(const struct stp *stp)
{
	int64_t n = stp_get_limit(stp, STP_MAXTRYLOCK), us = stp_get_limit(stp, STP_TRYLOCKDELAY);

	if (n <= 0 || us <= 0)
		return 0;
	return n > 1000000 / us ? 1000000000 : (uint64_t)(n * us) * 1000;
}

static void make_times(struct lower *l)
{
	static const struct { const char *name; enum ir_agg_fn fn; } times[STP_TIMES] = {
		[STP_TIME_MIN] = { "shortest", IR_A_MIN }, [STP_TIME_MAX] = { "longest", IR_A_MAX },
		[STP_TIME_ALL] = { "times", IR_A_STDDEV },
	};

	for (int k = 0; k < STP_TIMES; k++) {
		struct ir_agg *g = ir_agg_new(l->prog, times[k].name, times[k].fn);

		g->keys[g->nkeys++] = stp_lower_slot(STP_LONG);
		g->sign = true;
		l->code->times[k] = g;
	}
	l->began = ir_var_new(l->prog, "began", IR_LOCAL, stp_lower_slot(STP_LONG));
}

void stp_lower_end_time(struct lower *l)
{
	ir_reg both[2];

	if (!l->began)
		return;
	both[0] = ir_op2(&l->b, IR_SUB, ir_builtin(&l->b, IR_B_NOW), ir_vld(&l->b, l->began));
	both[1] = stp_lower_const(l, l->clause->code->id);
	for (int k = 0; k < STP_TIMES; k++)
		ir_agg_add(&l->b, l->code->times[k], both);
}

struct stp_code *stp_lower_prog(struct stp *stp, struct arena *a, struct diag *diag, struct stp_prog *tree, bool timing)
{
	struct lower l = { .arena = a, .diag = diag, .stp = stp, .tree = tree };
	unsigned int errors = diag->errors, n = 1;

	l.prog = ir_prog_new(a, (uint32_t)stp_get_limit(stp, STP_MAXSTRINGLEN));
	l.code = arena_new_of(a, struct stp_code);
	l.code->prog = l.prog;
	for (const struct stp_handler *h = tree->handlers; h; h = h->next)
		n++;
	l.code->clauses = arena_alloc(a, n * sizeof(*l.code->clauses));
	l.code->nears = arena_grow(a, NULL, &l.nears_cap, 0, sizeof(*l.code->nears));
	l.code->nears[l.code->nnears++] = (struct ir_near){ .what = "" };
	l.prog->exclusive = true;
	l.prog->lock_wait_ns = lock_wait(stp);
	stp_lower_find_recursive(tree);
	l.prog->nesting = (uint32_t)stp_get_limit(stp, STP_MAXNESTING);
	/* Ten calls more than the functions have when each calls the next once: SystemTap, "MAXNESTING" in stap(1). */
	for (const struct stp_func *f = tree->funcs; f; f = f->next)
		l.prog->nesting += f->recursive && l.prog->nesting < IR_MAX_NESTING && !stp_limit_is_given(stp, STP_MAXNESTING);
	make_memories(&l);
	if (timing)
		make_times(&l);
	lower_inits(&l);
	for (const struct stp_handler *h = tree->handlers; h; h = h->next)
		lower_handler(&l, h);
	if (l.nodes > LOW_MAX_NODES)
		diag_error(diag, tree->handlers->pos, "S_SIZE",
			   "semantic error: the script's functions make a program that is too large");
	l.prog->nears = l.code->nears;
	l.prog->nnears = l.code->nnears;
	if (diag->errors != errors)
		return NULL;
	assert(!ir_check(l.prog));	/* a refusal would be a bug in dtap, not a mistake in the script */
	return l.code;
}
