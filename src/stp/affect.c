/*
 * Which globals each handler reads and writes, and which handlers so change the condition of another:
 *
 *	probe 0 ('timer.s(1)') locks __global_enabled[r]
 *	probe 1 ('timer.s(5)') locks __global_enabled[rw]
 *	probe 1 can affect condition of probe 0
 *
 * Words and order: those of SystemTap's translator (stap -p3 -vvv).  A condition is tested whenever its probe fires, so
 * nothing of this decides what is armed.
 */
#include "stp/affect.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/strbuf.h"
#include "stp/ast.h"

enum { READS = 1, WRITES = 2 };

/* What the script's globals are used for, by one handler: a byte each, in the order of the declarations. */
struct uses {
	const struct stp_prog *prog;
	unsigned char *bits;
	const struct stp_func **seen;	/* functions already looked into */
	size_t nseen, cap;
};

static void mark(struct uses *u, const struct stp_var *v, unsigned char bits)
{
	size_t i = 0;

	for (const struct stp_var *g = u->prog->globals.first; g && v && v->is_global; g = g->next, i++)
		if (g == v)
			u->bits[i] |= bits;
}

static void use_stmt(void *ctx, struct stp_stmt **child);
static void use_node(void *ctx, struct stp_node **child);

static void use_func(struct uses *u, const struct stp_func *f)
{
	for (size_t i = 0; i < u->nseen; i++)
		if (u->seen[i] == f)
			return;
	if (u->nseen == u->cap)
		return;
	u->seen[u->nseen++] = f;
	for (struct stp_stmt *body = f->body; body; body = NULL)
		use_stmt(u, &body);
}

/* The left side of an assignment: keys are read, the variable gets @bits. */
static void use_lvalue(struct uses *u, struct stp_node *n, unsigned char bits)
{
	const struct stp_node *base = n->kind == STP_INDEX ? n->l : n;

	if (base->kind != STP_NAME) {
		use_node(u, &n);
		return;
	}
	mark(u, base->var, bits);
	for (size_t i = 0; n->kind == STP_INDEX && i < n->nargs; i++)
		use_node(u, &n->args[i]);
}

static void use_node(void *ctx, struct stp_node **child)
{
	struct stp_node *n = *child;
	struct uses *u = ctx;

	if (!n)
		return;
	if (n->kind == STP_ASSIGN || n->kind == STP_PRE || n->kind == STP_POST) {
		use_lvalue(u, n->l, n->kind == STP_ASSIGN && (n->op == STP_OP_NONE || n->op == STP_ADDEND) ? WRITES
													   : READS | WRITES);
		if (n->r)
			use_node(u, &n->r);
		return;
	}
	if (n->kind == STP_NAME)
		mark(u, n->var, READS);
	if (n->kind == STP_CALL)
		for (const struct stp_func *f = n->func; f; f = f->overload)
			use_func(u, f);
	stp_each_node(n, use_node, u);
}

static void use_stmt(void *ctx, struct stp_stmt **child)
{
	struct stp_stmt *s = *child;
	struct uses *u = ctx;

	if (s->kind == STP_S_DELETE)
		use_lvalue(u, s->expr, WRITES);
	else
		stp_each_expr(s, use_node, u);
	for (size_t i = 0; i < s->nkeys; i++)
		mark(u, s->keys[i]->var, WRITES);
	if (s->value)
		mark(u, s->value->var, WRITES);
	if (s->kind == STP_S_FOREACH && s->sort_dir && s->array->kind == STP_NAME)
		mark(u, s->array->var, WRITES);	/* the array itself is sorted there */
	stp_each_stmt(s, use_stmt, u);
}

static void dump_locks(struct strbuf *out, size_t number, const struct stp_handler *h, const struct uses *u)
{
	struct stp_point bare = *h->point;
	bool any = false;
	size_t i = 0;

	bare.cond = NULL;
	bare.optional = bare.sufficient = false;
	strbuf_printf(out, "probe %zu ('", number);
	stp_dump_point(out, &bare);
	strbuf_puts(out, "') locks ");
	for (const struct stp_var *v = u->prog->globals.first; v; v = v->next, i++) {
		if (!u->bits[i])
			continue;
		strbuf_printf(out, "%s__global_%s[%s%s]", any ? " " : "", v->name, u->bits[i] & READS ? "r" : "",
			      u->bits[i] & WRITES ? "w" : "");
		any = true;
	}
	strbuf_puts(out, any ? "\n" : "nothing\n");
}

/* Can the handler of uses @a change the condition of uses @cond? */
static bool affects(const unsigned char *a, const unsigned char *cond, size_t nglobals)
{
	for (size_t g = 0; g < nglobals; g++)
		if ((a[g] & WRITES) && (cond[g] & READS))
			return true;
	return false;
}

/* A handler that can change a condition tests it, so it reads what the condition reads. */
static void dump_all(struct strbuf *out, const struct stp_prog *p, const unsigned char *all, const unsigned char *conds,
		     unsigned char *locked, size_t nglobals)
{
	const struct stp_handler *a, *b;
	size_t i = 0, j;

	for (a = p->handlers; a; a = a->next, i++) {
		const unsigned char *own = all + i * nglobals;

		memcpy(locked, own, nglobals);
		for (b = p->handlers, j = 0; b; b = b->next, j++)
			for (size_t g = 0; affects(own, conds + j * nglobals, nglobals) && g < nglobals; g++)
				locked[g] |= conds[j * nglobals + g];
		dump_locks(out, i, a, &(struct uses){ .prog = p, .bits = locked });
	}
	for (a = p->handlers, i = 0; a; a = a->next, i++)
		for (b = p->handlers, j = 0; b; b = b->next, j++)
			if (affects(all + i * nglobals, conds + j * nglobals, nglobals))
				strbuf_printf(out, "probe %zu can affect condition of probe %zu\n", i, j);
}

void stp_dump_locks(struct strbuf *out, const struct stp_prog *p)
{
	size_t nglobals = 0, nhandlers = 0, nfuncs = 0, k = 0;
	unsigned char *all, *conds;	/* and room for one more after them */
	const struct stp_func **seen;

	for (const struct stp_var *v = p->globals.first; v; v = v->next)
		nglobals++;
	for (const struct stp_handler *h = p->handlers; h; h = h->next)
		nhandlers++;
	for (const struct stp_func *f = p->funcs; f; f = f->next)
		nfuncs++;
	all = calloc(nhandlers * 2 + 1, nglobals + 1);
	seen = calloc(nfuncs + 1, sizeof(*seen));
	if (!all || !seen)
		goto out;
	conds = all + nhandlers * nglobals;
	for (const struct stp_handler *h = p->handlers; h; h = h->next, k++) {
		struct uses u = { .prog = p, .bits = conds + k * nglobals, .seen = seen, .cap = nfuncs };

		for (size_t i = 0; i < h->nconds; i++)
			use_node(&u, &h->conds[i]);
		for (size_t i = 0; i < nglobals; i++)
			all[k * nglobals + i] = u.bits[i];
		u.bits = all + k * nglobals;
		u.nseen = 0;
		for (size_t i = 0; i < h->nblocks; i++)
			use_stmt(&u, &h->blocks[i]);
	}
	dump_all(out, p, all, conds, conds + nhandlers * nglobals, nglobals);
out:
	free(all);
	free(seen);
}
