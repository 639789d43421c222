/*
 * Functions: expanded inline, or procedures if recursive; context variables.
 *
 * Overloads of a name are tried in order: `next` continues with the next one, and in the last one is an error
 * (language reference, "Overloading").
 */
#include "stp/lower.h"

#include <string.h>

#include "abi/segment.h"
#include "arch/calc.h"
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

/* Mark the functions called from the start of the search, and note whether it is among them. */
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

void stp_lower_find_recursive(struct stp_prog *p)
{
	for (struct stp_func *f = p->funcs; f; f = f->next) {
		struct search s = { .prog = p, .from = f };

		search_stmt(&s, &f->body);
		f->recursive = s.found;
	}
	/* Overloads count as one body. */
	for (struct stp_func *f = p->funcs; f; f = f->next)
		for (const struct stp_func *g = f; g; g = g->overload)
			f->recursive |= g->recursive;
}

/* --- bodies ------------------------------------------------------------------------------------------ */

void stp_lower_clear(struct lower *l, const struct stp_vars *vars)
{
	for (struct stp_var *v = vars->first; v; v = v->next)
		if (v->type == STP_LONG || v->type == STP_STRINGS)
			ir_vst(&l->b, stp_lower_var(l, v), stp_lower_dummy(l, v->type));
}

/* The result type of @f and its overloads; one with only `next` has none. */
static enum stp_type result_type(const struct stp_func *f)
{
	while (f && f->type == STP_UNKNOWN)
		f = f->overload;
	return f ? f->type : STP_UNKNOWN;
}

/* Lower the bodies of @f and its overloads; the builder is at c->end afterwards. */
static void lower_bodies(struct lower *l, struct stp_func *f, struct stp_lower_call *c)
{
	c->tries = l->tries;
	c->loop = l->loop;
	c->outer = l->call;
	c->end = ir_block_new(&l->b);
	l->loop = NULL;
	l->call = c;
	if (c->result)
		ir_vst(&l->b, c->result, stp_lower_dummy(l, result_type(f)));
	for (; f; f = f->overload) {
		c->next = NULL;
		stp_lower_clear(l, &f->locals);
		stp_lower_stmt(l, f->body);
		stp_lower_count(l, 0, f->body->what, f->body->pos, true);
		ir_jmp(&l->b, c->end);
		if (!c->next)
			break;
		ir_at(&l->b, c->next);
	}
	if (!f)
		ir_raise(&l->b, stp_lower_str(l, "all functions exhausted"));
	ir_at(&l->b, c->end);
	l->call = c->outer;
	l->loop = c->loop;
}

/* Parameters that nothing is assigned to have the number of the call: a function is expanded for one call at a time. */
static void know_params(const struct stp_node *n, bool known)
{
	size_t i = 0;

	for (struct stp_var *p = n->func->params.first; p && i < n->nargs; p = p->next, i++) {
		p->known = known && !p->writes && n->args[i]->kind == STP_NUM;
		p->known_value = n->args[i]->value;
	}
}

/* The arguments of @n; those whose texts are made where they are printed are none. */
static ir_reg *lower_args(struct lower *l, const struct stp_node *n)
{
	ir_reg *args = arena_alloc(l->arena, (n->nargs + 1) * sizeof(*args));
	struct stp_node **made = arena_alloc(l->arena, (n->nargs + 1) * sizeof(*made));
	struct stp_var *p = n->func->params.first;

	for (size_t i = 0; i < n->nargs; i++, p = p ? p->next : NULL) {
		bool late = p && !n->func->overload && stp_lower_passes_late(n->func, p, n->args[i]);

		args[i] = IR_NO_REG;
		made[i] = late ? NULL : n->args[i];
	}
	stp_lower_values(l, made, n->nargs, args);
	return args;
}

static struct ir_var *lower_inline(struct lower *l, struct stp_node *n, const ir_reg *args, struct stp_lower_choice *choice)
{
	enum stp_type type = result_type(n->func);
	struct stp_lower_call c = { .site = n, .result = type == STP_UNKNOWN ? NULL : stp_lower_temp(l, type),
				    .choice = choice };

	if (l->calls >= LOW_MAX_CALLS) {
		l->nodes = LOW_MAX_NODES + 1;
		return c.result;
	}
	for (struct stp_func *f = n->func; f; f = f->overload) {
		const ir_reg *arg = args;

		for (struct stp_var *p = f->params.first; p; p = p->next, arg++) {
			if (p->type == STP_STRINGS && *arg == IR_NO_REG)
				p->late = n->args[arg - args]->var->late;
			else if (p->type != STP_UNKNOWN)
				ir_vst(&l->b, stp_lower_var(l, p), *arg);
		}
	}
	know_params(n, true);
	l->calls++;
	lower_bodies(l, n->func, &c);
	l->calls--;
	know_params(n, false);
	for (struct stp_var *p = n->func->params.first; p; p = p->next)
		p->late = NULL;
	return c.result;
}

/* --- procedures -------------------------------------------------------------------------------------- */

static struct stp_lower_proc *find_proc(struct lower *l, struct stp_func *f)
{
	struct stp_lower_proc *p;

	for (p = l->procs; p; p = p->next)
		if (p->func == f)
			return p;
	p = arena_new_of(l->arena, struct stp_lower_proc);
	p->func = f;
	p->block = ir_block_new(&l->b);
	if (result_type(f) != STP_UNKNOWN)
		p->result = ir_var_new(l->prog, f->name, IR_LOCAL, stp_lower_slot(result_type(f)));
	*l->procs_tail = p;
	l->procs_tail = &p->next;
	return p;
}

static ir_reg lower_enter(struct lower *l, struct stp_node *n, const ir_reg *args)
{
	struct stp_lower_proc *p = find_proc(l, n->func);
	struct ir_block *then = ir_block_new(&l->b);

	for (struct stp_func *f = n->func; f; f = f->overload) {
		const ir_reg *arg = args;

		for (struct stp_var *v = f->params.first; v; v = v->next, arg++) {
			if (v->type == STP_UNKNOWN)
				continue;
			if (!v->ir)
				v->ir = ir_var_new(l->prog, v->name, IR_FRAME, stp_lower_slot(v->type));
			ir_pass(&l->b, v->ir, *arg);
		}
	}
	stp_lower_near(l, n->what, n->pos);
	ir_enter(&l->b, p->block, then);
	ir_at(&l->b, then);
	return p->result ? ir_vld(&l->b, p->result) : IR_NO_REG;
}

void stp_lower_procs(struct lower *l)
{
	for (struct stp_lower_proc *p = l->procs; p; p = p->next) {
		struct stp_lower_call c = { .procedure = true, .result = p->result };

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

static ir_reg lower_builtin(struct lower *l, struct stp_node *n, const ir_reg *args)
{
	const struct stp_builtin *b = n->builtin;

	stp_lower_near(l, n->what, n->pos);
	switch (b->how) {
	case STP_BY_BUILTIN:
		return ir_builtin(&l->b, (enum ir_builtin)b->number);
	case STP_BY_RUNTIME:
		return ir_call(&l->b, (enum ir_fn)b->number, args, b->nparams);
	case STP_BY_CODE:
		return b->lower(l, n, args);
	case STP_BY_SHOW:
		return stp_lower_mark(l, n);
	default:
		stp_lower_refuse(l, n, b->instead, "the function is not available");
		return b->result == STP_UNKNOWN ? IR_NO_REG : stp_lower_dummy(l, b->result);
	}
}

ir_reg stp_lower_call(struct lower *l, struct stp_node *n)
{
	ir_reg *args = arena_alloc(l->arena, (n->nargs + 1) * sizeof(*args));
	struct ir_var *result;

	if (n->builtin && (n->builtin->how == STP_BY_SHOW || n->builtin->lower == stp_func_print_usyms))
		return lower_builtin(l, n, args);	/* which evaluates its argument, if necessary */
	if (!n->builtin && !n->func->recursive) {
		result = lower_inline(l, n, lower_args(l, n), NULL);
		return result ? ir_vld(&l->b, result) : IR_NO_REG;
	}
	stp_lower_values(l, n->args, n->nargs, args);
	return n->builtin ? lower_builtin(l, n, args) : lower_enter(l, n, args);
}

struct ir_var *stp_lower_call_late(struct lower *l, struct stp_node *n, struct stp_lower_choice *c)
{
	return lower_inline(l, n, lower_args(l, n), c);
}

/* --- context variables ------------------------------------------------------------------------------- */

static ir_reg lower_source(struct lower *l, struct stp_node *n, const struct stp_source *src);

/* "a=0x1 b=0x2" */
static ir_reg lower_list(struct lower *l, struct stp_node *n, const struct stp_source *src)
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
	r = stp_lower_sprintf(l, arena_strdup(l->arena, strbuf_str(&b)), vals, nvals);
	strbuf_fini(&b);
	return r;
}

/* The string at the address in quotes, or the address if it cannot be read. */
static ir_reg quoted(struct lower *l, const struct stp_node *n, ir_reg addr, uint32_t size)
{
	struct stp_node max = { .kind = STP_NUM, .value = size }, *args[2] = { NULL, &max };
	struct stp_node call = { .kind = STP_CALL, .pos = n->pos, .what = n->what, .nargs = size ? 2 : 1, .args = args,
				 .builtin = stp_find_builtin(size ? "user_string_n_quoted" : "user_string_quoted",
							     size ? 2 : 1) };
	ir_reg vals[2] = { addr, stp_lower_const(l, size) };

	return stp_func_string_quoted_at(l, &call, vals);
}

static ir_reg lower_format(struct lower *l, struct stp_node *n, const struct stp_source *src)
{
	struct ir_var *kept[IR_MAX_KEYS], *base = l->base;
	ir_reg vals[IR_MAX_KEYS];

	/* The value before -> is computed once. */
	if (n->kind != STP_TARGET) {
		ir_reg addr = stp_lower_expr(l, n->l);

		l->base = stp_lower_temp(l, STP_LONG);
		ir_vst(&l->b, l->base, addr);
	}
	/* Reading strings needs branches, so each value is kept in a variable. */
	for (size_t i = 0; i < src->nnames; i++) {
		struct stp_source item = src->items[i];
		bool string = item.type == STP_STRINGS;
		ir_reg v;

		item.type = STP_LONG;
		v = lower_source(l, n, &item);
		kept[i] = stp_lower_temp(l, src->items[i].type);
		ir_vst(&l->b, kept[i], string ? quoted(l, n, v, item.size) : v);
	}
	l->base = base;
	for (size_t i = 0; i < src->nnames; i++)
		vals[i] = ir_vld(&l->b, kept[i]);
	return stp_lower_sprintf(l, src->text, vals, (unsigned int)src->nnames);
}

/* ->name, [0], ["key"] of an object of Python. */
static ir_reg lower_python_part(struct lower *l, const struct stp_part *part, ir_reg obj, ir_reg index)
{
	ir_reg args[2] = { obj, part->name ? stp_lower_str(l, part->name) : index };
	bool text = part->name || part->index->type == STP_STRINGS;

	return ir_call(&l->b, part->name ? IR_FN_PYATTR : text ? IR_FN_PYKEY : IR_FN_PYITEM, args, 2);
}

static ir_reg lower_python(struct lower *l, struct stp_node *n, const struct stp_source *src)
{
	struct stp_node *indices[STP_MAX_STEPS] = { 0 };
	ir_reg vals[STP_MAX_STEPS], obj, name;

	for (size_t i = 0; i < n->nparts; i++)
		indices[i] = n->parts[i].index;
	stp_lower_values(l, indices, STP_MAX_STEPS, vals);
	stp_lower_near(l, n->what, n->pos);
	if (src->text) {
		name = stp_lower_str(l, src->text);
		obj = ir_call(&l->b, IR_FN_PYVAR, &name, 1);
	} else {
		obj = ir_call(&l->b, IR_FN_PYRESULT, NULL, 0);
	}
	for (size_t i = 0; i < n->nparts; i++)
		obj = lower_python_part(l, &n->parts[i], obj, vals[i]);
	return ir_call(&l->b, n->pretty ? IR_FN_PYSHOW : IR_FN_PYTEXT, &obj, 1);
}

static ir_reg lower_python_vars(struct lower *l, const struct stp_source *src)
{
	ir_reg which = stp_lower_const(l, src->arg);

	return ir_call(&l->b, IR_FN_PYVARS, &which, 1);
}

static ir_reg copyinstr(struct lower *l, ir_reg addr, int64_t size)
{
	ir_reg args[2] = { addr, stp_lower_const(l, size) };

	return ir_call(&l->b, IR_FN_COPYINSTR, args, 2);
}

static ir_reg bias_of(struct lower *l, const struct stp_program *p)
{
	ir_reg args[3] = { stp_lower_const(l, (int64_t)p->dev), stp_lower_const(l, (int64_t)p->ino),
			   stp_lower_const(l, (int64_t)p->start) };

	return ir_call(&l->b, IR_FN_BIAS, args, 3);
}

static ir_reg calculate(struct lower *l, const struct stp_source *src)
{
	static const enum ir_op ops[] = {
		[CALC_ADD] = IR_ADD, [CALC_SUB] = IR_SUB, [CALC_MUL] = IR_MUL, [CALC_AND] = IR_AND, [CALC_OR] = IR_OR,
		[CALC_XOR] = IR_XOR, [CALC_SHL] = IR_SHL, [CALC_SHR] = IR_SHR, [CALC_SAR] = IR_SAR, [CALC_EQ] = IR_EQ,
		[CALC_NE] = IR_NE, [CALC_LT] = IR_SLT, [CALC_LE] = IR_SLE,
	};
	ir_reg stack[CALC_MAX_STACK + 1], r;
	unsigned int n = 0;

	for (unsigned int i = 0; i < src->ncalc; i++) {
		const struct calc_step *s = &src->calc[i];

		switch (s->kind) {
		case CALC_CONST: case CALC_ADDR:
			stack[n++] = stp_lower_const(l, s->n);
			break;
		case CALC_REG:
			stack[n++] = ir_op2(&l->b, IR_ADD, ir_arg(&l->b, s->reg), stp_lower_const(l, s->n));
			break;
		case CALC_PICK:
			stack[n] = stack[n - 1 - (unsigned int)s->n];
			n++;
			break;
		case CALC_DROP:
			n--;
			break;
		case CALC_SWAP: case CALC_ROT:
			r = stack[n - 1];
			stack[n - 1] = stack[n - 2];
			stack[n - 2] = r;
			if (s->kind == CALC_ROT) {
				stack[n - 2] = stack[n - 3];
				stack[n - 3] = r;
			}
			break;
		case CALC_LOAD:
			stack[n - 1] = ir_load(&l->b, IR_ULOAD, stack[n - 1], (unsigned int)s->n, false);
			break;
		case CALC_NEG:
			stack[n - 1] = ir_op2(&l->b, IR_SUB, stp_lower_const(l, 0), stack[n - 1]);
			break;
		case CALC_NOT:
			stack[n - 1] = ir_op2(&l->b, IR_XOR, stack[n - 1], stp_lower_const(l, -1));
			break;
		default:
			n--;
			stack[n - 1] = ir_op2(&l->b, ops[s->kind], stack[n - 1], stack[n]);
			break;
		}
	}
	return stack[0];
}

/* The address from which the offsets of thread-local variables count. */
static ir_reg thread_block(struct lower *l, const struct stp_source *src)
{
	ir_reg fact = stp_lower_const(l, ABI_TASK_TLS), thread = ir_call(&l->b, IR_FN_SELF, &fact, 1), slot, table;

	if (!src->tls)
		return thread;
	slot = ir_op2(&l->b, IR_ADD, ir_arg(&l->b, src->arg), stp_lower_const(l, src->tls->off));
	slot = ir_load(&l->b, IR_ULOAD, slot, 8, false);
	if (!src->tls->is_number)
		return ir_op2(&l->b, IR_ADD, thread, slot);
	table = ir_load(&l->b, IR_ULOAD, ir_op2(&l->b, IR_ADD, thread, stp_lower_const(l, 8)), 8, false);
	table = ir_op2(&l->b, IR_ADD, table, ir_op2(&l->b, IR_SHL, slot, stp_lower_const(l, 4)));
	return ir_load(&l->b, IR_ULOAD, table, 8, false);
}

/* The value at the end of @src's steps or, with @address, its address. */
static ir_reg lower_steps(struct lower *l, struct stp_node *n, const struct stp_source *src, bool address)
{
	struct stp_node *vs[STP_MAX_STEPS + 1] = { 0 };
	ir_reg vals[STP_MAX_STEPS + 1], r;
	struct ir_var *base = l->base;

	for (unsigned int i = 0; i < src->nsteps; i++)
		vs[i] = src->steps[i].index;
	vs[STP_MAX_STEPS] = src->kind == STP_SRC_VALUE && !base ? n->l : NULL;
	l->base = NULL;
	stp_lower_values(l, vs, STP_MAX_STEPS + 1, vals);
	l->base = base;
	stp_lower_near(l, n->what, n->pos);
	if (src->kind == STP_SRC_VALUE)
		r = base ? ir_vld(&l->b, base) : vals[STP_MAX_STEPS];
	else if (src->kind == STP_SRC_PROGRAM)
		r = bias_of(l, src->program);
	else if (src->kind == STP_SRC_CALC)
		r = calculate(l, src);
	else if (src->kind == STP_SRC_THREAD)
		r = thread_block(l, src);
	else
		r = ir_arg(&l->b, src->arg);
	for (unsigned int i = 0; i < src->nsteps; i++) {
		const struct stp_step *s = &src->steps[i];

		if (s->index)
			r = ir_op2(&l->b, IR_ADD, r, ir_op2(&l->b, IR_MUL, vals[i], stp_lower_const(l, s->scale)));
		if (s->off)
			r = ir_op2(&l->b, IR_ADD, r, stp_lower_const(l, s->off));
		if (s->width && !(address && i + 1 == src->nsteps))
			r = ir_load(&l->b, s->kernel ? IR_LOAD : IR_ULOAD, r, s->width, s->sign);
	}
	return r;
}

static ir_reg lower_source(struct lower *l, struct stp_node *n, const struct stp_source *src)
{
	ir_reg r;

	switch (src->kind) {
	case STP_SRC_TEXT:
		return stp_lower_str(l, src->text);
	case STP_SRC_FORMAT:
		return lower_format(l, n, src);
	case STP_SRC_LIST:
		return lower_list(l, n, src);
	case STP_SRC_PYTHON:
		return lower_python(l, n, src);
	case STP_SRC_PYTHON_VARS:
		return lower_python_vars(l, src);
	default:
		break;
	}
	r = lower_steps(l, n, src, false);
	if (src->bits) {
		r = ir_op2(&l->b, IR_SHL, r, stp_lower_const(l, 64 - src->bit - src->bits));
		r = ir_op2(&l->b, src->sign ? IR_SAR : IR_SHR, r, stp_lower_const(l, 64 - src->bits));
	}
	if (src->width)
		r = ir_ext(&l->b, r, src->width, src->sign);
	if (src->type != STP_STRINGS)
		return r;
	if (src->nsteps && src->steps[src->nsteps - 1].kernel)
		return stp_lower_sprintf(l, "\"%s\"", (ir_reg[]){ ir_call(&l->b, IR_FN_STRINGOF, &r, 1) }, 1);
	return copyinstr(l, r, l->prog->strsize);
}

ir_reg stp_lower_target(struct lower *l, struct stp_node *n)
{
	stp_lower_near(l, n->what, n->pos);
	return lower_source(l, n, n->source);
}

/* The @width bytes at @addr with the bits of @src replaced by @val. */
static ir_reg with_bits(struct lower *l, const struct stp_source *src, unsigned int width, ir_reg addr, ir_reg val)
{
	int64_t mask = (int64_t)((src->bits < 64 ? (1ull << src->bits) - 1 : ~0ull) << src->bit);
	ir_reg old = ir_load(&l->b, IR_ULOAD, addr, width, false);

	val = ir_op2(&l->b, IR_AND, ir_op2(&l->b, IR_SHL, val, stp_lower_const(l, src->bit)), stp_lower_const(l, mask));
	return ir_op2(&l->b, IR_OR, ir_op2(&l->b, IR_AND, old, stp_lower_const(l, ~mask)), val);
}

ir_reg stp_lower_write(struct lower *l, struct stp_node *n, struct stp_node *value)
{
	const struct stp_source *src = n->source;
	const struct stp_step *last = src && src->nsteps ? &src->steps[src->nsteps - 1] : NULL;
	struct ir_var *kept = stp_lower_temp(l, STP_LONG);
	ir_reg args[3];

	if (!last || !last->width || last->kernel || src->readonly || (src->kind != STP_SRC_ARG && src->kind != STP_SRC_VALUE)) {
		stp_lower_refuse(l, n, "dtap writes to memory of the traced process alone", "it cannot be written to");
		return stp_lower_const(l, 0);
	}
	ir_vst(&l->b, kept, stp_lower_expr(l, value));
	args[0] = lower_steps(l, n, src, true);
	args[1] = ir_vld(&l->b, kept);
	if (src->bits)
		args[1] = with_bits(l, src, last->width, args[0], args[1]);
	args[2] = stp_lower_const(l, last->width);
	stp_lower_near(l, n->what, n->pos);
	l->code->nears[l->b.act].text = "write fault [man error::fault] at 0x%x";
	ir_call(&l->b, IR_FN_UPOKE, args, 3);
	return ir_vld(&l->b, kept);
}
