/*
 * Globals that the script writes and never reads are printed at its end (stap(1), "VARIABLES"):
 *
 *	probe end { printf("g=%#d\n", g) }
 *	probe end { foreach (v = [i0, i1] in a-) printf("a[%#d,\"%#s\"]=%#d\n", i0, i1, v) }
 *	probe end { if (@count(s)) printf("s @count=%#d ...\n", @count(s), ...) else printf("s @count=0x0\n") }
 *
 * The handlers are created after the type inference, with its annotations.  n++ as a statement does not count as
 * reading n.  Globals of a library are not printed.
 *
 * The owner of a run may also ask for globals while it runs; handlers for that print them in the form that sem.h tells.
 */
#include "stp/sem.h"

#include <string.h>

#include "base/arena.h"
#include "base/strbuf.h"
#include "lang/format.h"
#include "stp/point.h"

/* --- which ------------------------------------------------------------------------------------------- */

static struct stp_var *base_var(const struct stp_node *n)
{
	return n->kind == STP_INDEX ? n->l->var : n->kind == STP_NAME ? n->var : NULL;
}

/* Mark the value of @child as used; @ctx is ignored. */
static void use(void *ctx, struct stp_node **child)
{
	struct stp_node *n = *child;

	if (n->kind == STP_ASSIGN && (n->op == STP_OP_NONE || n->op == STP_ADDEND)) {
		if (n->l->kind == STP_INDEX)
			for (size_t i = 0; i < n->l->nargs; i++)
				use(ctx, &n->l->args[i]);
		else if (n->l->kind != STP_NAME)
			use(ctx, &n->l);
		use(ctx, &n->r);
		return;
	}
	if (n->kind == STP_NAME && n->var)
		n->var->used = true;
	stp_each_node(n, use, ctx);
}

/* @n is executed only for its effect. */
static void use_effect(struct stp_node *n)
{
	bool changes = n->kind == STP_PRE || n->kind == STP_POST || n->kind == STP_ASSIGN;

	if (!changes || !base_var(n->l)) {
		use(NULL, &n);
		return;
	}
	if (n->l->kind == STP_INDEX)
		for (size_t i = 0; i < n->l->nargs; i++)
			use(NULL, &n->l->args[i]);
	if (n->r)
		use(NULL, &n->r);
}

static void use_stmt(void *ctx, struct stp_stmt **child)
{
	struct stp_stmt *s = *child;

	switch (s->kind) {
	case STP_S_EXPR:
		use_effect(s->expr);
		break;
	case STP_S_DELETE:
		if (s->expr->kind == STP_INDEX)
			for (size_t i = 0; i < s->expr->nargs; i++)
				if (s->expr->args[i])
					use(ctx, &s->expr->args[i]);
		break;
	case STP_S_FOR:
		if (s->init)
			use_effect(s->init);
		if (s->expr)
			use(ctx, &s->expr);
		if (s->incr)
			use_effect(s->incr);
		break;
	default:
		stp_each_expr(s, use, ctx);
		break;
	}
	stp_each_stmt(s, use_stmt, ctx);
}

static void find_used(struct stp_prog *p)
{
	for (struct stp_handler *h = p->handlers; h; h = h->next) {
		for (size_t i = 0; i < h->nconds; i++)
			use(NULL, &h->conds[i]);
		for (size_t i = 0; i < h->nblocks; i++)
			use_stmt(NULL, &h->blocks[i]);
	}
	for (struct stp_func *f = p->funcs; f; f = f->next)
		use_stmt(NULL, &f->body);
}

/* --- how --------------------------------------------------------------------------------------------- */

static struct stp_node *node(struct arena *a, enum stp_kind kind, const struct stp_var *v, enum stp_type type)
{
	struct stp_node *n = arena_new_of(a, struct stp_node);

	n->kind = kind;
	n->pos = v->pos;
	n->type = type;
	n->what = arena_printf(a, "identifier '%s'", v->name);
	return n;
}

static struct stp_node *name(struct arena *a, struct stp_var *v)
{
	struct stp_node *n = node(a, STP_NAME, v, v->type);

	n->name = v->name;
	n->var = v;
	return n;
}

static void add_arg(struct arena *a, struct stp_node *n, struct stp_node *arg)
{
	n->args = arena_grow(a, n->args, &n->args_cap, n->nargs, sizeof(*n->args));
	n->args[n->nargs++] = arg;
}

static struct stp_stmt *stmt(struct arena *a, enum stp_stmt_kind kind, const struct stp_var *v)
{
	struct stp_stmt *s = arena_new_of(a, struct stp_stmt);

	s->kind = kind;
	s->pos = v->pos;
	s->what = arena_printf(a, "identifier '%s'", v->name);
	return s;
}

static struct stp_node *local(struct arena *a, struct stp_handler *h, const struct stp_var *v, const char *called,
			      enum stp_type type)
{
	struct stp_var *l = stp_var_add(a, &h->locals, called, v->pos);

	l->arity = 0;
	l->type = type;
	l->synthetic = true;
	return name(a, l);
}

static struct stp_stmt *print(struct arena *a, const struct stp_var *v, const char *format, struct stp_node *n)
{
	static const struct stp_print printf_op = { "printf", .formatted = true };
	struct stp_stmt *s = stmt(a, STP_S_EXPR, v);
	const char *err;
	size_t off;

	n->print = &printf_op;
	n->str = format;
	n->str_len = strlen(format);
	n->fmt = fmt_parse(a, FMT_STP, format, n->str_len, &err, &off);
	s->expr = n;
	return s;
}

/* Append the statistic of @v, or of its element indexed by @call's first arguments. */
static void add_stats(struct arena *a, struct strbuf *b, struct stp_var *v, struct stp_node *call)
{
	static const enum stp_stat shown[] = {
		STP_STAT_COUNT, STP_STAT_MIN, STP_STAT_MAX, STP_STAT_SUM, STP_STAT_AVG,
	};
	size_t nkeys = call->nargs;

	for (size_t i = 0; i < sizeof(shown) / sizeof(shown[0]); i++) {
		struct stp_node *x = node(a, STP_EXTRACT, v, STP_LONG);

		x->stat = shown[i];
		x->l = name(a, v);
		if (nkeys) {
			struct stp_node *index = node(a, STP_INDEX, v, STP_STATS);

			index->l = x->l;
			for (size_t k = 0; k < nkeys; k++)
				add_arg(a, index, name(a, call->args[k]->var));
			x->l = index;
		}
		v->stats |= 1u << shown[i];
		add_arg(a, call, x);
		strbuf_printf(b, " %s=%%#d", stp_stat_text(shown[i]));
	}
}

static void add_value(struct arena *a, struct strbuf *b, struct stp_node *call, struct stp_node *value)
{
	strbuf_puts(b, value->type == STP_STRINGS ? "=\"%#s\"" : "=%#d");
	add_arg(a, call, value);
}

/* The same for a pointer. */
static void add_pointer(struct arena *a, struct strbuf *b, struct stp_node *call, struct stp_node *value)
{
	strbuf_puts(b, "=%#x");
	add_arg(a, call, value);
}

static struct stp_stmt *show_scalar(struct arena *a, struct stp_var *v)
{
	struct stp_node *call = node(a, STP_PRINT, v, STP_LONG);
	struct stp_stmt *s, *choose;
	struct strbuf b = {0};

	strbuf_puts(&b, v->name);
	if (v->type == STP_STATS)
		add_stats(a, &b, v, call);
	else if (v->type == STP_LONG && v->target)
		add_pointer(a, &b, call, name(a, v));
	else
		add_value(a, &b, call, name(a, v));
	strbuf_putc(&b, '\n');
	s = print(a, v, arena_strdup(a, strbuf_str(&b)), call);
	strbuf_fini(&b);
	if (v->type != STP_STATS)
		return s;
	choose = stmt(a, STP_S_IF, v);
	choose->expr = call->args[0];
	choose->yes = s;
	choose->no = print(a, v, arena_printf(a, "%s @count=0x0\n", v->name), node(a, STP_PRINT, v, STP_LONG));
	return choose;
}

static struct stp_stmt *show_array(struct arena *a, struct stp_handler *h, struct stp_var *v)
{
	struct stp_node *call = node(a, STP_PRINT, v, STP_LONG);
	struct stp_stmt *s = stmt(a, STP_S_FOREACH, v);
	struct strbuf b = {0};

	s->array = name(a, v);
	s->sort_dir = -1;
	strbuf_printf(&b, "%s[", v->name);
	for (int i = 0; i < v->arity; i++) {
		struct stp_node *key = local(a, h, v, arena_printf(a, "__idx%d", i), v->index_types[i]);

		strbuf_printf(&b, "%s%s", i ? "," : "", key->type == STP_STRINGS ? "\"%#s\"" : "%#d");
		s->keys = arena_grow(a, s->keys, &s->keys_cap, s->nkeys, sizeof(*s->keys));
		s->keys[s->nkeys++] = key;
		add_arg(a, call, name(a, key->var));
	}
	strbuf_putc(&b, ']');
	if (v->type == STP_STATS) {
		add_stats(a, &b, v, call);
	} else {
		s->value = local(a, h, v, "__val", v->type);
		add_value(a, &b, call, name(a, s->value->var));
	}
	strbuf_putc(&b, '\n');
	s->yes = print(a, v, arena_strdup(a, strbuf_str(&b)), call);
	strbuf_fini(&b);
	return s;
}

static struct stp_handler *new_handler(struct stp_prog *p, const struct stp_var *v, enum stp_point_kind kind)
{
	struct stp_handler *h = arena_new_of(p->arena, struct stp_handler);
	struct stp_point *end = arena_new_of(p->arena, struct stp_point);

	end->pos = v->pos;
	end->comps = arena_new_of(p->arena, struct stp_comp);
	end->comps[0].name = kind == STP_P_END ? "end" : "read";
	end->comps[0].pos = v->pos;
	end->n = end->cap = 1;
	h->pos = v->pos;
	h->point = h->written = end;
	h->kind = kind;
	h->locals.tail = &h->locals.first;
	h->blocks = arena_new_of(p->arena, struct stp_stmt *);
	h->nblocks = h->blocks_cap = 1;
	*p->handlers_tail = h;
	p->handlers_tail = &h->next;
	return h;
}

static void show(struct stp_prog *p, struct stp_var *v)
{
	struct stp_handler *h = new_handler(p, v, STP_P_END);

	h->blocks[0] = v->arity > 0 ? show_array(p->arena, h, v) : show_scalar(p->arena, v);
}

void sem_display(struct stp_prog *p)
{
	find_used(p);
	for (struct stp_var *v = p->globals.first; v; v = v->next)
		if (!v->used && v->writes && !v->from_library && v->type != STP_UNKNOWN)
			show(p, v);
}

/* --- for the owner of the run ------------------------------------------------------------------------- */

static void find_set(void *ctx, struct stp_node **child)
{
	const struct stp_node *n = *child;
	bool changes = n->kind == STP_PRE || n->kind == STP_POST || n->kind == STP_ASSIGN;
	struct stp_var *v = changes ? base_var(n->l) : NULL;

	if (v && n->op != STP_ADD)
		v->is_set = true;
	stp_each_node(*child, find_set, ctx);
}

static void find_set_stmt(void *ctx, struct stp_stmt **child)
{
	stp_each_expr(*child, find_set, ctx);
	stp_each_stmt(*child, find_set_stmt, ctx);
}

static void find_sets(struct stp_prog *p)
{
	for (struct stp_handler *h = p->handlers; h; h = h->next)
		for (size_t i = 0; i < h->nblocks; i++)
			find_set_stmt(NULL, &h->blocks[i]);
	for (struct stp_func *f = p->funcs; f; f = f->next)
		find_set_stmt(NULL, &f->body);
}

/* The variable, or its element of the keys @call prints. */
static struct stp_node *element(struct arena *a, struct stp_var *v, const struct stp_node *call)
{
	struct stp_node *index;

	if (v->arity <= 0)
		return name(a, v);
	index = node(a, STP_INDEX, v, v->type);
	index->l = name(a, v);
	for (int i = 0; i < v->arity; i++)
		add_arg(a, index, name(a, call->args[i]->var));
	return index;
}

static void add_extract(struct arena *a, struct stp_var *v, struct stp_node *call, enum stp_stat stat)
{
	struct stp_node *x = node(a, STP_EXTRACT, v, STP_LONG);

	x->stat = stat;
	x->l = element(a, v, call);
	v->stats |= 1u << stat;
	add_arg(a, call, x);
}

static bool has_hist(const struct stp_var *v)
{
	return v->stats & (1u << STP_HIST_LOG | 1u << STP_HIST_LINEAR);
}

static struct stp_stmt *print_hist(struct arena *a, struct stp_var *v, const struct stp_node *keys)
{
	static const struct stp_print print_op = { "print" };
	struct stp_node *call = node(a, STP_PRINT, v, STP_LONG), *hist = node(a, STP_HIST, v, STP_STATS);
	struct stp_stmt *s = stmt(a, STP_S_EXPR, v);

	hist->stat = v->stats & 1u << STP_HIST_LOG ? STP_HIST_LOG : STP_HIST_LINEAR;
	memcpy(hist->hist, v->hist, sizeof(hist->hist));
	hist->l = element(a, v, keys);
	call->print = &print_op;
	add_arg(a, call, hist);
	s->expr = call;
	return s;
}

/* Print one value; @call has the keys.  A statistic without values has none to show. */
static struct stp_stmt *read_value(struct arena *a, struct stp_var *v, struct stp_node *call, struct stp_node *value,
				   struct strbuf *format)
{
	struct stp_stmt *line, *both, *choose;

	if (v->type != STP_STATS) {
		add_arg(a, call, value);
		strbuf_puts(format, " %d");
		return print(a, v, arena_strdup(a, strbuf_str(format)), call);
	}
	choose = stmt(a, STP_S_IF, v);
	add_extract(a, v, call, STP_STAT_COUNT);
	choose->expr = call->args[call->nargs - 1];
	add_extract(a, v, call, STP_STAT_SUM);
	strbuf_puts(format, " %d %d");
	line = print(a, v, arena_strdup(a, strbuf_str(format)), call);
	choose->yes = line;
	if (has_hist(v)) {
		both = stmt(a, STP_S_BLOCK, v);
		both->stmts = arena_alloc(a, 2 * sizeof(*both->stmts));
		both->stmts[0] = line;
		both->stmts[1] = print_hist(a, v, call);
		both->n = both->cap = 2;
		choose->yes = both;
	}
	return choose;
}

static struct stp_stmt *read_array(struct arena *a, struct stp_handler *h, struct stp_var *v, struct stp_node *call,
				   struct strbuf *format)
{
	struct stp_stmt *s = stmt(a, STP_S_FOREACH, v);

	s->array = name(a, v);
	for (int i = 0; i < v->arity; i++) {
		struct stp_node *key = local(a, h, v, arena_printf(a, "__idx%d", i), v->index_types[i]);

		strbuf_puts(format, key->type == STP_STRINGS ? " %s" : " %d");
		s->keys = arena_grow(a, s->keys, &s->keys_cap, s->nkeys, sizeof(*s->keys));
		s->keys[s->nkeys++] = key;
		add_arg(a, call, name(a, key->var));
	}
	if (v->type != STP_STATS)
		s->value = local(a, h, v, "__val", v->type);
	s->yes = read_value(a, v, call, s->value ? name(a, s->value->var) : NULL, format);
	return s;
}

static void read_global(struct stp_prog *p, struct stp_var *v)
{
	struct stp_handler *h = new_handler(p, v, STP_P_READ);
	struct stp_node *call = node(p->arena, STP_PRINT, v, STP_LONG);
	struct strbuf format = {0};

	strbuf_printf(&format, "%s %s", v->name, v->type != STP_STATS ? (v->is_set ? "gauge" : "counter") :
					has_hist(v) ? "hist" : "stat");
	if (v->arity > 0)
		h->blocks[0] = read_array(p->arena, h, v, call, &format);
	else
		h->blocks[0] = read_value(p->arena, v, call, name(p->arena, v), &format);
	strbuf_fini(&format);
}

void sem_readings(struct stp_prog *p)
{
	find_sets(p);
	for (struct stp_var *v = p->globals.first; v; v = v->next)
		if (v->writes && !v->from_library && (v->type == STP_LONG || v->type == STP_STATS))
			read_global(p, v);
}
