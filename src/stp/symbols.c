#include "stp/sem.h"

#include <stdarg.h>
#include <string.h>

#include "base/arena.h"
#include "base/strbuf.h"
#include "lang/diag.h"
#include "lang/regex.h"
#include "lang/similar.h"
#include "stp/subsystem.h"
#include "stp/tapset.h"

enum use { USE_READ, USE_WRITE, USE_BOTH };

enum { MAX_SHIFT = 62 };	/* of @variance */

static void resolve(struct sem *s, struct stp_node *n, enum use use);

static void resolve_child(void *ctx, struct stp_node **child)
{
	resolve(ctx, *child, USE_READ);
}

/* --- reports ----------------------------------------------------------------------------------------- */

void sem_error(struct sem *s, const struct stp_node *n, const char *tag, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	diag_error(s->diag, n->pos, tag, "semantic error: %s: %s", arena_vprintf(s->arena, fmt, ap), n->what);
	va_end(ap);
}

const char *sem_position(struct sem *s, const char *what, struct src_pos pos)
{
	return arena_printf(s->arena, "%s at %s:%u:%u", what ? what : "declaration", pos.src ? pos.src->name : "",
			    pos.line, pos.col);
}

/* --- variables --------------------------------------------------------------------------------------- */

static struct stp_var *find_global(struct sem *s, const char *name, const struct source *src, bool of_library)
{
	struct stp_var *v, *other = NULL;

	for (v = s->prog->globals.first; v; v = v->next) {
		if (strcmp(v->name, name) || (of_library && !v->from_library))
			continue;
		if (v->pos.src == src)
			return v;
		if (!v->is_private)
			other = v;
	}
	return other;
}

static struct stp_vars *scope_locals(struct sem *s)
{
	return s->func ? &s->func->locals : &s->handler->locals;
}

/* A name in a library's function does not refer to the script's global of that name, unless it is an array. */
static struct stp_var *find_var(struct sem *s, const struct stp_node *n, bool array)
{
	struct stp_var *v = s->func ? stp_var_find(&s->func->params, n->name) : NULL;

	if (!v)
		v = find_global(s, n->name, n->pos.src, s->func && s->func->from_library && !array);
	return v ? v : stp_var_find(scope_locals(s), n->name);
}

static void count_use(struct stp_var *v, enum use use)
{
	v->reads += use != USE_WRITE;
	v->writes += use != USE_READ;
}

/* A global has the same number of indexes everywhere, also in code that is eliminated later. */
static void name_arity(struct sem *s, const struct stp_node *n, struct stp_var *v, size_t arity)
{
	if (!v->named) {
		v->named = n;
		v->named_arity = arity;
	} else if (v->named_arity != arity) {
		sem_error(s, n, "S_ARITY", "inconsistent arity (%zu vs %zu)", v->named_arity, arity);
		diag_hint(s->diag, "arity %zu first inferred here: %s", v->named_arity, sem_position(s, v->named->what, v->named->pos));
	}
}

/* Resolve the variable of a STP_NAME; an unknown name becomes a local. */
static void resolve_name(struct sem *s, struct stp_node *n, enum use use)
{
	struct stp_var *v = find_var(s, n, false);

	if (s->in_cond && (!v || !v->is_global)) {
		sem_error(s, n, "S_COND_LOCAL", "probe condition must not reference undeclared global");
		return;
	}
	if (!v) {
		v = stp_var_add(s->arena, scope_locals(s), n->name, n->pos);
		v->arity = 0;
	}
	n->var = v;
	count_use(v, use);
	if (v->is_global && !s->any_arity)
		name_arity(s, n, v, 0);
}

/* Resolve the array @n, used with @arity indexes. */
static void resolve_array(struct sem *s, struct stp_node *n, size_t arity, enum use use)
{
	struct stp_var *v;

	if (n->kind == STP_HIST) {
		resolve(s, n, USE_READ);
		return;
	}
	v = n->kind == STP_NAME ? find_var(s, n, true) : NULL;
	if (!v || !v->is_global) {
		sem_error(s, n, "S_ARRAY_UNDECLARED",
			  "unresolved arity-%zu global array %s, missing global declaration?", arity,
			  n->name ? n->name : "");
		return;
	}
	n->var = v;
	count_use(v, use);
	name_arity(s, n, v, arity);
}

static bool is_lvalue(const struct stp_node *n)
{
	switch (n->kind) {
	case STP_NAME:
	case STP_INDEX:
	case STP_TARGET:
	case STP_CAST:
	case STP_DEREF:
		return true;
	default:
		return false;
	}
}

/* --- functions --------------------------------------------------------------------------------------- */

static bool visible(const struct stp_func *f, const struct stp_node *n)
{
	return !f->is_private || f->pos.src == n->pos.src;
}

static void add_similar(void *ctx, const char *name)
{
	if (strncmp(name, "__", 2) && strncmp(name, "_stap", 5))	/* internal to a library */
		similar_add(ctx, name);
}

static void report_unknown_function(struct sem *s, const struct stp_node *n)
{
	struct similar similar = similar_to(n->name);
	struct strbuf b = { 0 };
	const char *name;

	for (const struct stp_func *f = s->prog->funcs; f; f = f->next)
		if (visible(f, n))
			add_similar(&similar, f->name);
	for (size_t i = 0; (name = stp_builtin_name(i)); i++)
		add_similar(&similar, name);
	if (s->prog->tapset)
		stp_tapset_functions(s->prog->tapset, add_similar, &similar);
	similar_print(&similar, &b);
	sem_error(s, n, "S_FUNC_UNDEF", "unresolved function %s (similar: %s)", n->name, strbuf_str(&b));
	strbuf_fini(&b);
}

static void resolve_call(struct sem *s, struct stp_node *n)
{
	struct stp_func *f, *other = NULL;
	const struct stp_subsystem *about;
	const struct stp_builtin *b;

	stp_each_node(n, resolve_child, s);
	for (f = s->prog->funcs; f; f = f->next) {
		if (strcmp(f->name, n->name) || !visible(f, n) || f->copy_of)
			continue;
		other = f;
		if (f->nparams == n->nargs && (!n->func || f->priority < n->func->priority))
			n->func = f;
	}
	if (n->func)
		return;
	n->builtin = stp_find_builtin(n->name, n->nargs);
	if (n->builtin && n->builtin->guru && !s->guru)
		sem_error(s, n, "S_GURU", "function may not be used unless -g is specified");
	if (n->builtin)
		return;
	if (other) {
		sem_error(s, n, "S_CALL_ARITY", "arity mismatch found (function '%s' takes %zu args)", n->name,
			  other->nparams);
		diag_hint(s->diag, "%s", sem_position(s, other->what, other->pos));
		return;
	}
	b = stp_find_builtin(n->name, SIZE_MAX);
	about = stp_subsystem_of(n->name, true);
	if (b)
		sem_error(s, n, "S_CALL_ARITY", "arity mismatch found (function '%s' takes %u args)", n->name,
			  b->nparams);
	else if (about)
		sem_error(s, n, "S_FUNC_KERNEL", "function %s is about %s, which dtap does not trace", n->name,
			  about->what);
	else
		report_unknown_function(s, n);
	if (!b && about)
		diag_hint(s->diag, "%s", about->instead);
}

/* Chain functions of one name: smaller priorities first, else in the order of the script. */
static void chain_overloads(struct stp_prog *p)
{
	for (struct stp_func *f = p->funcs; f; f = f->next) {
		struct stp_func *best = NULL;
		bool behind = false;

		for (struct stp_func *g = p->funcs; g; g = g->next) {
			behind |= g == f;
			if (g == f || g->nparams != f->nparams || strcmp(g->name, f->name) ||
			    g->is_private != f->is_private || (g->is_private && g->pos.src != f->pos.src))
				continue;
			if (g->priority < f->priority || (g->priority == f->priority && !behind))
				continue;
			if (!best || g->priority < best->priority)
				best = g;
		}
		f->overload = best;
	}
}

/* --- expressions ------------------------------------------------------------------------------------- */

static void resolve_index(struct sem *s, struct stp_node *n, enum use use)
{
	resolve_array(s, n->l, n->nargs, use);
	for (size_t i = 0; i < n->nargs; i++) {
		if (n->args[i])
			resolve(s, n->args[i], USE_READ);
		else
			sem_error(s, n->l, "S_WILDCARD", "wildcard not allowed in array index");
	}
}

static void check_no_write(struct sem *s, const struct stp_node *n)
{
	if (s->in_cond)
		sem_error(s, n, "S_COND_WRITE", "probe condition must not modify any variables");
}

static void resolve_assign(struct sem *s, struct stp_node *n)
{
	if (!is_lvalue(n->l)) {
		sem_error(s, n, "S_LVALUE", "Expecting lvalue for assignment");
		diag_hint(s->diag, "%s", sem_position(s, n->l->what, n->l->pos));
		resolve(s, n->l, USE_READ);
	} else {
		resolve(s, n->l, USE_WRITE);
	}
	resolve(s, n->r, USE_READ);
	if (n->op == STP_ADDEND && n->l->kind == STP_NAME && n->l->var && !n->l->var->is_global)
		sem_error(s, n->l, "S_STAT_LOCAL", "stat locals not supported, missing global declaration?");
}

static struct stp_var *stat_var(const struct stp_node *n)
{
	if (n->kind == STP_INDEX)
		n = n->l;
	return n->kind == STP_NAME ? n->var : NULL;
}

static void resolve_stat(struct sem *s, struct stp_node *n)
{
	unsigned int hists = 1u << STP_HIST_LINEAR | 1u << STP_HIST_LOG;
	struct stp_var *v;

	resolve(s, n->l, USE_READ);
	v = stat_var(n->l);
	if (!v)
		return;
	if (n->kind == STP_HIST && (v->stats & hists) &&
	    ((v->stats & hists) != 1u << n->stat || memcmp(v->hist, n->hist, sizeof(v->hist)))) {
		sem_error(s, n, "S_HIST", "multiple histogram types declared on '%s'", v->name);
		return;
	}
	v->stats |= 1u << n->stat;
	if (n->stat == STP_STAT_VARIANCE && (n->value < 0 || n->value > MAX_SHIFT))
		sem_error(s, n, "S_SHIFT", "bit shift (%lld) out of range <0..%d>", (long long)n->value, MAX_SHIFT);
	if (n->kind == STP_HIST)
		memcpy(v->hist, n->hist, sizeof(v->hist));
	else if (n->stat == STP_STAT_VARIANCE)
		v->shift = n->value;
}

static bool is_return(int kind)
{
	return kind == STP_P_RETURN || kind == STP_P_PLT_RETURN || kind == STP_P_SYSCALL_RETURN;
}

/* Resolve $name at the handler's point. */
static void resolve_target(struct sem *s, struct stp_node *n)
{
	static const char in_function[] = "a function that a probe of a return calls cannot have it: pass it as an argument";
	struct stp_source *source = arena_new_of(s->arena, struct stp_source);
	const struct stp_resolver *r = s->resolver;
	const struct stp_handler *h = s->context;
	bool at_return = s->func && h && is_return(h->kind);

	stp_each_node(n, resolve_child, s);
	if (n->nparts && !strncmp(n->name, "$$", 2)) {
		n->why = arena_printf(s->arena, "dwarf variable '%s' may not be used as a structure", n->name);
		return;
	}
	source->type = n->pretty || !strncmp(n->name, "$$", 2) ? STP_STRINGS : STP_LONG;
	if (at_return && !n->is_var && stp_is_gone(n)) {
		n->why = in_function;
		return;
	}
	if ((h || n->module) && r && r->target && r->target(r->ctx, h ? h->point : NULL,
							    h ? (enum stp_point_kind)h->kind : STP_P_NEVER, n, source, &n->why))
		n->source = source;
	if (at_return && n->source && n->is_var && source->kind != STP_SRC_PROGRAM) {
		n->source = NULL;
		n->why = in_function;
	}
	n->type = source->type;
}

/* Resolve the type of @cast. */
static void resolve_cast(struct sem *s, struct stp_node *n)
{
	struct stp_source *source = arena_new_of(s->arena, struct stp_source);
	const struct stp_resolver *r = s->resolver;

	stp_each_node(n, resolve_child, s);
	if (r && r->cast && r->cast(r->ctx, s->context ? s->context->point : NULL, n, source, &n->why))
		n->source = source;
}

static bool is_defined(const struct stp_node *n)
{
	return n->kind == STP_TARGET || n->kind == STP_CAST ? n->source != NULL : n->kind != STP_NAME;
}

static void set_number(struct stp_node *n, int64_t value)
{
	n->kind = STP_NUM;
	n->value = value;
	n->l = n->r = n->cond = NULL;
	n->nargs = n->nparts = 0;
	n->type = STP_LONG;
}

/* Compile the regular expression of =~. */
static void check_regex(struct sem *s, struct stp_node *n)
{
	const char *why;
	const struct regex *re = regex_compile(s->arena, n->str, false, &why);

	if (re)
		n->groups = re->ngroups;
	else
		diag_error(s->diag, n->str_pos, "S_REGEX", "semantic error: regex compilation error: %s: string '%s'", why, n->str);
}

static void resolve(struct sem *s, struct stp_node *n, enum use use)
{
	switch (n->kind) {
	case STP_NAME:
		resolve_name(s, n, use);
		break;
	case STP_INDEX:
		resolve_index(s, n, use);
		break;
	case STP_IN:
		resolve_array(s, n->l, n->nargs, USE_READ);
		for (size_t i = 0; i < n->nargs; i++)
			if (n->args[i])
				resolve(s, n->args[i], USE_READ);
		break;
	case STP_CALL:
		resolve_call(s, n);
		break;
	case STP_ASSIGN:
		check_no_write(s, n);
		resolve_assign(s, n);
		break;
	case STP_PRE:
	case STP_POST:
		check_no_write(s, n);
		resolve(s, n->l, is_lvalue(n->l) ? USE_WRITE : USE_READ);
		break;
	case STP_EXTRACT:
	case STP_HIST:
		resolve_stat(s, n);
		break;
	case STP_MATCH:
		check_regex(s, n);
		resolve(s, n->l, USE_READ);
		break;
	case STP_TARGET:
		resolve_target(s, n);
		break;
	case STP_CAST:
		resolve_cast(s, n);
		break;
	case STP_DEFINED:
		resolve(s, n->l, USE_READ);
		set_number(n, is_defined(n->l));
		break;
	default:
		stp_each_node(n, resolve_child, s);
		break;
	}
}

/* --- statements -------------------------------------------------------------------------------------- */

static void resolve_foreach(struct sem *s, struct stp_stmt *st)
{
	size_t arity = st->nslice > st->nkeys ? st->nslice : st->nkeys;

	resolve_array(s, st->array, arity, USE_READ);
	if (st->array->kind == STP_HIST && st->nkeys != 1)
		sem_error(s, st->array, "S_ARITY", "inconsistent arity (1 vs %zu)", st->nkeys);
	if (st->nslice && st->nslice != st->nkeys)
		sem_error(s, st->array, "S_ARRAY_UNDECLARED",
			  "unresolved arity-%zu global array %s, missing global declaration?", st->nslice,
			  st->array->name ? st->array->name : "");
	for (size_t i = 0; i < st->nkeys; i++)
		resolve(s, st->keys[i], USE_WRITE);
	if (st->value)
		resolve(s, st->value, USE_WRITE);
	for (size_t i = 0; i < st->nslice; i++)
		if (st->slice[i])
			resolve(s, st->slice[i], USE_READ);
	if (st->expr)
		resolve(s, st->expr, USE_READ);
	if (st->sort_by_stat && st->array->var)
		st->array->var->stats |= 1u << st->sort_stat;
}

static void resolve_delete(struct sem *s, struct stp_stmt *st)
{
	struct stp_node *n = st->expr;

	if (n->kind == STP_INDEX) {
		resolve_array(s, n->l, n->nargs, USE_WRITE);
		for (size_t i = 0; i < n->nargs; i++)
			if (n->args[i])
				resolve(s, n->args[i], USE_READ);
	} else if (n->kind == STP_NAME) {
		s->any_arity = true;
		resolve(s, n, USE_WRITE);
		s->any_arity = false;
	} else {
		sem_error(s, n, "S_DELETE", "invalid operand of delete expression");
	}
}

static void resolve_stmt(void *ctx, struct stp_stmt **stmt)
{
	struct stp_stmt *st = *stmt;
	struct sem *s = ctx;

	switch (st->kind) {
	case STP_S_FOREACH:
		resolve_foreach(s, st);
		break;
	case STP_S_DELETE:
		resolve_delete(s, st);
		break;
	case STP_S_TRY:
		if (st->value)
			resolve(s, st->value, USE_WRITE);
		break;
	default:
		stp_each_expr(st, resolve_child, s);
		break;
	}
	stp_each_stmt(st, resolve_stmt, s);
}

/* --- functions with context variables ----------------------------------------------------------------- */

struct mentions {
	const struct stp_prog *prog;
	bool found;		/* a context variable, or a call of a function that has one */
};

static void mentions_node(void *ctx, struct stp_node **child)
{
	const struct stp_node *n = *child;
	struct mentions *m = ctx;

	m->found |= n->kind == STP_TARGET;
	for (const struct stp_func *f = n->kind == STP_CALL ? m->prog->funcs : NULL; f && !m->found; f = f->next)
		m->found = f->contextual && !strcmp(f->name, n->name);
	if (!m->found)
		stp_each_node(*child, mentions_node, ctx);
}

static void mentions_stmt(void *ctx, struct stp_stmt **child)
{
	stp_each_expr(*child, mentions_node, ctx);
	stp_each_stmt(*child, mentions_stmt, ctx);
}

static void find_contextual(const struct stp_prog *prog)
{
	bool again;

	do {
		again = false;
		for (struct stp_func *f = prog->funcs; f; f = f->next) {
			struct mentions m = { .prog = prog };

			if (!f->contextual && f->body)
				mentions_stmt(&m, &f->body);
			f->contextual |= m.found;
			again |= m.found;
		}
	} while (again);
}

/* The copy of @f and its overloads for the current handler. */
static struct stp_func *copy_func(struct sem *s, struct stp_func *f)
{
	struct stp_func *c, *first = NULL, **link = &first;

	for (c = s->prog->funcs; c; c = c->next)
		if (c->copy_of == f && c->handler == s->context)
			return c;
	for (; f; f = f->overload) {
		c = arena_new_of(s->arena, struct stp_func);
		*c = *f;
		c->copy_of = f;
		c->handler = s->context;
		c->params.first = NULL;
		c->params.tail = &c->params.first;
		for (const struct stp_var *p = f->params.first; p; p = p->next) {
			struct stp_var *v = stp_var_add(s->arena, &c->params, p->name, p->pos);

			*v = *p;
			v->next = NULL;
		}
		c->locals.first = NULL;
		c->locals.tail = &c->locals.first;
		c->body = stp_copy_stmt(s->arena, f->body);
		c->next = NULL;
		*s->prog->funcs_tail = c;
		s->prog->funcs_tail = &c->next;
		*link = c;
		link = &c->overload;
	}
	return first;
}

/* --- the whole --------------------------------------------------------------------------------------- */

/* Functions of a library that are never called may be wrong: they are checked only when needed. */
static void need_calls_node(void *ctx, struct stp_node **child);

static void need_calls_stmt(void *ctx, struct stp_stmt **child)
{
	stp_each_expr(*child, need_calls_node, ctx);
	stp_each_stmt(*child, need_calls_stmt, ctx);
}

static void need_func(struct sem *s, struct stp_func *f)
{
	struct stp_handler *handler = s->handler, *context = s->context;
	struct stp_func *func = s->func;

	for (; f; f = f->overload) {
		if (f->needed)
			continue;
		f->needed = true;
		s->handler = NULL;
		s->func = f;
		s->context = f->copy_of ? context : NULL;
		resolve_stmt(s, &f->body);
		need_calls_stmt(s, &f->body);
	}
	s->handler = handler;
	s->func = func;
	s->context = context;
}

static void need_calls_node(void *ctx, struct stp_node **child)
{
	struct stp_node *n = *child;
	struct sem *s = ctx;

	if (n->kind == STP_CALL && n->func && n->func->contextual && s->context && !n->func->copy_of)
		n->func = copy_func(s, n->func);
	if (n->kind == STP_CALL && n->func)
		need_func(s, n->func);
	stp_each_node(n, need_calls_node, ctx);
}

bool sem_symbols(struct sem *s)
{
	unsigned int errors = s->diag->errors;

	chain_overloads(s->prog);
	find_contextual(s->prog);
	for (struct stp_handler *h = s->prog->handlers; h; h = h->next) {
		s->handler = s->context = h;
		s->func = NULL;
		s->in_cond = true;
		for (size_t i = 0; i < h->nconds; i++) {
			resolve(s, h->conds[i], USE_READ);
			need_calls_node(s, &h->conds[i]);
		}
		s->in_cond = false;
		for (size_t i = 0; i < h->nblocks; i++) {
			resolve_stmt(s, &h->blocks[i]);
			need_calls_stmt(s, &h->blocks[i]);
		}
	}
	s->context = NULL;
	for (struct stp_func *f = s->prog->funcs; f; f = f->next)
		if (!f->from_library && !f->contextual)
			need_func(s, f);
	s->handler = NULL;
	s->func = NULL;
	return s->diag->errors == errors;
}

static void warn_unassigned(struct sem *s, const struct stp_vars *vars)
{
	for (const struct stp_var *v = vars->first; v; v = v->next)
		if (v->reads && !v->writes && !v->init && !v->is_param)
			diag_warn(s->diag, v->pos, "S_NEVER_ASSIGNED",
				  "never-assigned %s variable '%s': identifier '%s'", v->is_global ? "global" : "local",
				  v->name, v->name);
}

void sem_warn_unassigned(struct sem *s)
{
	warn_unassigned(s, &s->prog->globals);
	for (const struct stp_handler *h = s->prog->handlers; h; h = h->next)
		warn_unassigned(s, &h->locals);
	for (const struct stp_func *f = s->prog->funcs; f; f = f->next)
		warn_unassigned(s, &f->locals);
}
