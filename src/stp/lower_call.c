/*
 * Functions: expanded where they are called, or procedures if they call themselves; context variables.
 *
 * Overloads of a name are tried one after the other: `next` in one goes to the next, and behind the last is an
 * error (language reference, "Overloading").
 */
#include "stp/lower.h"

#include <string.h>

#include "base/arena.h"
#include "base/strbuf.h"
#include "lang/diag.h"
#include "stp/lower_func.h"

/* --- who calls itself -------------------------------------------------------------------------------- */

struct search {
	struct stp_prog *prog;
	const struct stp_func *from;
	bool found;
};

static void search_stmt(void *ctx, struct stp_stmt **child);

/* Mark what is called from the function searched from, and see whether that is itself. */
static void search_node(void *ctx, struct stp_node **child)
{
	struct search *s = ctx;

	stp_each_node(*child, search_node, ctx);
	if ((*child)->kind != STP_CALL)
		return;
	for (struct stp_func *f = (*child)->func; f; f = f->overload) {
		s->found |= f == s->from;
		if (f->seen == s->from)
			continue;
		f->seen = s->from;
		search_stmt(ctx, &f->body);
	}
}

static void search_stmt(void *ctx, struct stp_stmt **child)
{
	stp_each_expr(*child, search_node, ctx);
	stp_each_stmt(*child, search_stmt, ctx);
}

void low_find_recursive(struct stp_prog *p)
{
	for (struct stp_func *f = p->funcs; f; f = f->next) {
		struct search s = { .prog = p, .from = f };

		search_stmt(&s, &f->body);
		f->recursive = s.found;
	}
	/* Overloads are one body. */
	for (struct stp_func *f = p->funcs; f; f = f->next)
		for (const struct stp_func *g = f; g; g = g->overload)
			f->recursive |= g->recursive;
}

/* --- bodies ------------------------------------------------------------------------------------------ */

void low_clear(struct low *l, const struct stp_vars *vars)
{
	for (struct stp_var *v = vars->first; v; v = v->next)
		if (v->type == STP_LONG || v->type == STP_STRINGS)
			ir_vst(&l->b, low_var(l, v), low_dummy(l, v->type));
}

/* What @f and its overloads return; one that only goes to the next has no type of its own. */
static enum stp_type result_type(const struct stp_func *f)
{
	while (f && f->type == STP_UNKNOWN)
		f = f->overload;
	return f ? f->type : STP_UNKNOWN;
}

/* The bodies of @f and its overloads; control is at c->end afterwards. */
static void lower_bodies(struct low *l, struct stp_func *f, struct low_call *c)
{
	c->tries = l->tries;
	c->loop = l->loop;
	c->outer = l->call;
	c->end = ir_block_new(&l->b);
	l->loop = NULL;
	l->call = c;
	if (c->result)
		ir_vst(&l->b, c->result, low_dummy(l, result_type(f)));
	for (; f; f = f->overload) {
		c->next = NULL;
		low_clear(l, &f->locals);
		low_stmt(l, f->body);
		low_count(l, 0, f->body->what, f->body->pos, true);
		ir_jmp(&l->b, c->end);
		if (!c->next)
			break;
		ir_at(&l->b, c->next);
	}
	if (!f)
		ir_raise(&l->b, low_str(l, "all functions exhausted"));
	ir_at(&l->b, c->end);
	l->call = c->outer;
	l->loop = c->loop;
}

static ir_reg lower_inline(struct low *l, struct stp_node *n, const ir_reg *args)
{
	enum stp_type type = result_type(n->func);
	struct low_call c = { .result = type == STP_UNKNOWN ? NULL : low_temp(l, type) };

	if (l->calls >= LOW_MAX_CALLS) {
		l->nodes = LOW_MAX_NODES + 1;
		return low_dummy(l, n->type);
	}
	for (struct stp_func *f = n->func; f; f = f->overload) {
		const ir_reg *arg = args;

		for (struct stp_var *p = f->params.first; p; p = p->next, arg++)
			if (p->type != STP_UNKNOWN)
				ir_vst(&l->b, low_var(l, p), *arg);
	}
	l->calls++;
	lower_bodies(l, n->func, &c);
	l->calls--;
	return c.result ? ir_vld(&l->b, c.result) : IR_NO_REG;
}

/* --- procedures -------------------------------------------------------------------------------------- */

static struct low_proc *find_proc(struct low *l, struct stp_func *f)
{
	struct low_proc *p;

	for (p = l->procs; p; p = p->next)
		if (p->func == f)
			return p;
	p = arena_new_of(l->arena, struct low_proc);
	p->func = f;
	p->block = ir_block_new(&l->b);
	if (result_type(f) != STP_UNKNOWN)
		p->result = ir_var_new(l->prog, f->name, IR_LOCAL, low_slot(result_type(f)));
	*l->procs_tail = p;
	l->procs_tail = &p->next;
	return p;
}

static ir_reg lower_enter(struct low *l, struct stp_node *n, const ir_reg *args)
{
	struct low_proc *p = find_proc(l, n->func);
	struct ir_block *then = ir_block_new(&l->b);

	for (struct stp_func *f = n->func; f; f = f->overload) {
		const ir_reg *arg = args;

		for (struct stp_var *v = f->params.first; v; v = v->next, arg++) {
			if (v->type == STP_UNKNOWN)
				continue;
			if (!v->ir)
				v->ir = ir_var_new(l->prog, v->name, IR_FRAME, low_slot(v->type));
			ir_pass(&l->b, v->ir, *arg);
		}
	}
	low_near(l, n->what, n->pos);
	ir_enter(&l->b, p->block, then);
	ir_at(&l->b, then);
	return p->result ? ir_vld(&l->b, p->result) : IR_NO_REG;
}

void low_procs(struct low *l)
{
	for (struct low_proc *p = l->procs; p; p = p->next) {
		struct low_call c = { .procedure = true, .result = p->result };

		ir_at(&l->b, p->block);
		l->tries = 0;
		l->loop = NULL;
		l->call = NULL;
		l->statements = 0;
		lower_bodies(l, p->func, &c);
		ir_leave(&l->b);
	}
}

/* --- calls ------------------------------------------------------------------------------------------- */

static ir_reg lower_builtin(struct low *l, struct stp_node *n, const ir_reg *args)
{
	const struct stp_builtin *b = n->builtin;

	low_near(l, n->what, n->pos);
	switch (b->how) {
	case STP_BY_BUILTIN:
		return ir_builtin(&l->b, (enum ir_builtin)b->number);
	case STP_BY_RUNTIME:
		return ir_call(&l->b, (enum ir_fn)b->number, args, b->nparams);
	case STP_BY_CODE:
		return b->lower(l, n, args);
	case STP_BY_SHOW:
		low_refuse(l, n, "make it an argument of print, printf or another print",
			   "names of addresses are known only where they are printed");
		return low_dummy(l, b->result);
	default:
		low_refuse(l, n, b->instead, "the function is not available");
		return b->result == STP_UNKNOWN ? IR_NO_REG : low_dummy(l, b->result);
	}
}

ir_reg low_call(struct low *l, struct stp_node *n)
{
	ir_reg *args = arena_alloc(l->arena, (n->nargs + 1) * sizeof(*args));

	if (n->builtin && n->builtin->how == STP_BY_CODE && n->builtin->lower == low_func_print_usyms)
		return lower_builtin(l, n, args);	/* its argument is no value */
	low_values(l, n->args, n->nargs, args);
	if (n->builtin)
		return lower_builtin(l, n, args);
	return n->func->recursive ? lower_enter(l, n, args) : lower_inline(l, n, args);
}

/* --- context variables ------------------------------------------------------------------------------- */

static ir_reg lower_source(struct low *l, struct stp_node *n, const struct stp_source *src);

/* "a=0x1 b=0x2" */
static ir_reg lower_list(struct low *l, struct stp_node *n, const struct stp_source *src)
{
	ir_reg vals[IR_MAX_KEYS];
	struct strbuf b = {0};
	unsigned int nvals = 0;
	ir_reg r;

	for (size_t i = 0; i < src->nnames && nvals < IR_MAX_KEYS; i++) {
		ir_reg v;

		if (src->items[i].kind == STP_SRC_UNKNOWN) {
			strbuf_printf(&b, "%s%s=%s", i ? " " : "", src->names[i], src->items[i].text);
			continue;
		}
		v = lower_source(l, n, &src->items[i]);
		strbuf_printf(&b, "%s%s=%s", i ? " " : "", src->names[i],
			      src->items[i].type == STP_STRINGS ? "\"%s\"" : "%#x");
		vals[nvals++] = v;
	}
	r = low_sprintf(l, arena_strdup(l->arena, strbuf_str(&b)), vals, nvals);
	strbuf_fini(&b);
	return r;
}

/* In quotes what can be read, else the address. */
static ir_reg quoted(struct low *l, const struct stp_node *n, ir_reg addr, uint32_t size)
{
	struct stp_node max = { .kind = STP_NUM, .value = size }, *args[2] = { NULL, &max };
	struct stp_node call = { .kind = STP_CALL, .pos = n->pos, .what = n->what, .nargs = size ? 2 : 1, .args = args,
				 .builtin = stp_find_builtin(size ? "user_string_n_quoted" : "user_string_quoted",
							     size ? 2 : 1) };
	ir_reg vals[2] = { addr, low_const(l, size) };

	return low_func_string_quoted_at(l, &call, vals);
}

static ir_reg lower_format(struct low *l, struct stp_node *n, const struct stp_source *src)
{
	struct ir_var *kept[IR_MAX_KEYS], *base = l->base;
	ir_reg vals[IR_MAX_KEYS];

	/* What is before -> is computed once. */
	if (n->kind != STP_TARGET) {
		ir_reg addr = low_expr(l, n->l);

		l->base = low_temp(l, STP_LONG);
		ir_vst(&l->b, l->base, addr);
	}
	/* Reading strings parts the control flow, so each value waits in a variable. */
	for (size_t i = 0; i < src->nnames; i++) {
		struct stp_source item = src->items[i];
		bool string = item.type == STP_STRINGS;
		ir_reg v;

		item.type = STP_LONG;
		v = lower_source(l, n, &item);
		kept[i] = low_temp(l, src->items[i].type);
		ir_vst(&l->b, kept[i], string ? quoted(l, n, v, item.size) : v);
	}
	l->base = base;
	for (size_t i = 0; i < src->nnames; i++)
		vals[i] = ir_vld(&l->b, kept[i]);
	return low_sprintf(l, src->text, vals, (unsigned int)src->nnames);
}

static ir_reg copyinstr(struct low *l, ir_reg addr, int64_t size)
{
	ir_reg args[2] = { addr, low_const(l, size) };

	return ir_call(&l->b, IR_FN_COPYINSTR, args, 2);
}

/* What @src's steps lead to, or (@address) where that is. */
static ir_reg lower_steps(struct low *l, struct stp_node *n, const struct stp_source *src, bool address)
{
	struct stp_node *vs[STP_MAX_STEPS + 1] = { 0 };
	ir_reg vals[STP_MAX_STEPS + 1], r;
	struct ir_var *base = l->base;

	for (unsigned int i = 0; i < src->nsteps; i++)
		vs[i] = src->steps[i].index;
	vs[STP_MAX_STEPS] = src->kind == STP_SRC_VALUE && !base ? n->l : NULL;
	l->base = NULL;
	low_values(l, vs, STP_MAX_STEPS + 1, vals);
	l->base = base;
	low_near(l, n->what, n->pos);
	if (src->kind == STP_SRC_VALUE)
		r = base ? ir_vld(&l->b, base) : vals[STP_MAX_STEPS];
	else
		r = ir_arg(&l->b, src->arg);
	for (unsigned int i = 0; i < src->nsteps; i++) {
		const struct stp_step *s = &src->steps[i];

		if (s->index)
			r = ir_op2(&l->b, IR_ADD, r, ir_op2(&l->b, IR_MUL, vals[i], low_const(l, s->scale)));
		if (s->off)
			r = ir_op2(&l->b, IR_ADD, r, low_const(l, s->off));
		if (s->width && !(address && i + 1 == src->nsteps))
			r = ir_load(&l->b, s->kernel ? IR_LOAD : IR_ULOAD, r, s->width, s->sign);
	}
	return r;
}

static ir_reg lower_source(struct low *l, struct stp_node *n, const struct stp_source *src)
{
	ir_reg r;

	switch (src->kind) {
	case STP_SRC_TEXT:
		return low_str(l, src->text);
	case STP_SRC_FORMAT:
		return lower_format(l, n, src);
	case STP_SRC_LIST:
		return lower_list(l, n, src);
	default:
		break;
	}
	r = lower_steps(l, n, src, false);
	if (src->bits) {
		r = ir_op2(&l->b, IR_SHL, r, low_const(l, 64 - src->bit - src->bits));
		r = ir_op2(&l->b, src->sign ? IR_SAR : IR_SHR, r, low_const(l, 64 - src->bits));
	}
	if (src->width)
		r = ir_ext(&l->b, r, src->width, src->sign);
	if (src->type != STP_STRINGS)
		return r;
	if (src->nsteps && src->steps[src->nsteps - 1].kernel)
		return low_sprintf(l, "\"%s\"", (ir_reg[]){ ir_call(&l->b, IR_FN_STRINGOF, &r, 1) }, 1);
	return copyinstr(l, r, l->prog->strsize);
}

ir_reg low_target(struct low *l, struct stp_node *n)
{
	low_near(l, n->what, n->pos);
	return lower_source(l, n, n->source);
}

/* The bits of @src, of the @width bytes at @addr, that become @val: all bytes. */
static ir_reg with_bits(struct low *l, const struct stp_source *src, unsigned int width, ir_reg addr, ir_reg val)
{
	int64_t mask = (int64_t)((src->bits < 64 ? (1ull << src->bits) - 1 : ~0ull) << src->bit);
	ir_reg old = ir_load(&l->b, IR_ULOAD, addr, width, false);

	val = ir_op2(&l->b, IR_AND, ir_op2(&l->b, IR_SHL, val, low_const(l, src->bit)), low_const(l, mask));
	return ir_op2(&l->b, IR_OR, ir_op2(&l->b, IR_AND, old, low_const(l, ~mask)), val);
}

ir_reg low_write(struct low *l, struct stp_node *n, struct stp_node *value)
{
	const struct stp_source *src = n->source;
	const struct stp_step *last = src && src->nsteps ? &src->steps[src->nsteps - 1] : NULL;
	struct ir_var *kept = low_temp(l, STP_LONG);
	ir_reg args[3];

	if (!last || !last->width || last->kernel || src->readonly || (src->kind != STP_SRC_ARG && src->kind != STP_SRC_VALUE)) {
		low_refuse(l, n, "dtap writes to memory of the traced process alone", "it cannot be written to");
		return low_const(l, 0);
	}
	ir_vst(&l->b, kept, low_expr(l, value));
	args[0] = lower_steps(l, n, src, true);
	args[1] = ir_vld(&l->b, kept);
	if (src->bits)
		args[1] = with_bits(l, src, last->width, args[0], args[1]);
	args[2] = low_const(l, last->width);
	low_near(l, n->what, n->pos);
	l->code->nears[l->b.act].text = "write fault [man error::fault] at 0x%x";
	ir_call(&l->b, IR_FN_UPOKE, args, 3);
	return ir_vld(&l->b, kept);
}
