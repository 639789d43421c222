/*
 * @entry(expr) in a probe of a function's return: the value of expr when the function was called.
 *
 * A second handler, at the function's entry, saves the values by thread and depth of calls; the handler at the return
 * begins by taking them out:
 *
 *	probe F.call   { _entry_depth1[tid()]++
 *			 _entry2[tid(), _entry_depth1[tid()]] = expr }
 *	probe F.return { _entry_level = _entry_depth1[tid()]
 *			 if (_entry_level > 1) _entry_depth1[tid()]-- else delete _entry_depth1[tid()]
 *			 _entry_value2 = _entry2[tid(), _entry_level]
 *			 delete _entry2[tid(), _entry_level]
 *			 ... _entry_value2 ... }
 *
 * Language reference: "Context variables", @entry.
 */
#include "stp/point.h"

#include <string.h>

#include "base/arena.h"

struct saved {
	struct stp_node *expr;
	struct stp_var *kept;
	const char *value;		/* the local's name */
};

struct entries {
	struct arena *arena;
	struct stp_prog *prog;
	struct saved *v;
	size_t n, cap;
	bool at_return;			/* of a function */
};

/* --- trees ------------------------------------------------------------------------------------------- */

static struct stp_node *node(struct entries *e, enum stp_kind kind, struct src_pos pos)
{
	struct stp_node *n = arena_new_of(e->arena, struct stp_node);

	n->kind = kind;
	n->pos = pos;
	n->what = "operator '@entry'";
	return n;
}

static struct stp_node *name(struct entries *e, const char *called, struct src_pos pos)
{
	struct stp_node *n = node(e, STP_NAME, pos);

	n->name = called;
	return n;
}

/* @array[tid()], or with a level @array[tid(), @level]. */
static struct stp_node *by_thread(struct entries *e, const struct stp_var *array, struct stp_node *level)
{
	struct stp_node *n = node(e, STP_INDEX, array->pos), *tid = node(e, STP_CALL, array->pos);

	tid->name = "tid";
	n->l = name(e, array->name, array->pos);
	n->args = arena_alloc(e->arena, 2 * sizeof(*n->args));
	n->args_cap = 2;
	n->args[n->nargs++] = tid;
	if (level)
		n->args[n->nargs++] = level;
	return n;
}

static struct stp_node *assign(struct entries *e, struct stp_node *l, struct stp_node *r)
{
	struct stp_node *n = node(e, STP_ASSIGN, l->pos);

	n->l = l;
	n->r = r;
	return n;
}

static struct stp_node *step(struct entries *e, struct stp_node *l, enum stp_op op)
{
	struct stp_node *n = node(e, STP_POST, l->pos);

	n->op = op;
	n->l = l;
	return n;
}

static struct stp_stmt *stmt(struct entries *e, enum stp_stmt_kind kind, struct stp_node *expr)
{
	struct stp_stmt *s = arena_new_of(e->arena, struct stp_stmt);

	s->kind = kind;
	s->expr = expr;
	s->pos = expr->pos;
	s->what = expr->what;
	return s;
}

static void add(struct entries *e, struct stp_stmt *block, struct stp_stmt *s)
{
	block->stmts = arena_grow(e->arena, block->stmts, &block->cap, block->n, sizeof(*block->stmts));
	block->stmts[block->n++] = s;
}

static struct stp_var *array(struct entries *e, const char *called, struct src_pos pos)
{
	struct stp_var *v = stp_var_add(e->arena, &e->prog->globals, called, pos);

	v->is_global = v->from_library = v->synthetic = true;
	return v;
}

/* --- finding ----------------------------------------------------------------------------------------- */

bool stp_is_gone(const struct stp_node *n)
{
	if (n->kind == STP_TARGET && n->is_var)
		return n->addressed;
	return n->kind == STP_TARGET && strcmp(n->name, "$return") && strcmp(n->name, "$$return") &&
	       strcmp(n->name, "$$name") && strcmp(n->name, "$$args");
}

/* @var means the value at the return, but its location is known only at the entry. */
static bool has_address(const struct stp_node *n)
{
	return n->kind == STP_TARGET && n->is_var && !n->addressed;
}

/* @var("x")->y as (@entry(&@var("x")))->y. */
static struct stp_node *by_address(struct entries *e, struct stp_node *var)
{
	struct stp_node *deref = node(e, STP_DEREF, var->pos), *entry = node(e, STP_ENTRY, var->pos);

	deref->what = var->what;
	deref->parts = var->parts;
	deref->nparts = var->nparts;
	deref->pretty = var->pretty;
	deref->l = entry;
	entry->l = var;
	var->parts = NULL;
	var->nparts = 0;
	var->pretty = 0;
	var->addressed = true;
	return deref;
}

/* Replace each @entry by the local that will have its value. */
static void take_node(void *ctx, struct stp_node **child)
{
	struct stp_node *n = *child;
	struct entries *e = ctx;
	struct saved *s;
	size_t number;

	if (n->kind == STP_DEFINED && e->at_return)
		return;
	if (e->at_return && has_address(n)) {
		stp_each_node(n, take_node, ctx);
		*child = by_address(e, n);
		child = &(*child)->l;
		n = *child;
	}
	if (n->kind != STP_ENTRY && !(e->at_return && stp_is_gone(n))) {
		stp_each_node(n, take_node, ctx);
		return;
	}
	number = ++e->prog->nentries;
	e->v = arena_grow(e->arena, e->v, &e->cap, e->n, sizeof(*e->v));
	s = &e->v[e->n++];
	s->expr = n->kind == STP_ENTRY ? n->l : n;
	s->kept = array(e, arena_printf(e->arena, "_entry%zu", number), n->pos);
	s->value = arena_printf(e->arena, "_entry_value%zu", number);
	*child = name(e, s->value, n->pos);
}

static void take_stmt(void *ctx, struct stp_stmt **child)
{
	stp_each_expr(*child, take_node, ctx);
	stp_each_stmt(*child, take_stmt, ctx);
}

static struct stp_stmt *prologue(struct entries *e, const struct stp_var *depth)
{
	static const char level[] = "_entry_level";
	struct stp_stmt *block, *choose;

	block = stmt(e, STP_S_BLOCK, name(e, level, depth->pos));
	block->expr = NULL;
	add(e, block, stmt(e, STP_S_EXPR, assign(e, name(e, level, depth->pos), by_thread(e, depth, NULL))));
	choose = stmt(e, STP_S_IF, node(e, STP_BINARY, depth->pos));
	choose->expr->op = STP_GT;
	choose->expr->l = name(e, level, depth->pos);
	choose->expr->r = node(e, STP_NUM, depth->pos);
	choose->expr->r->value = 1;
	choose->yes = stmt(e, STP_S_EXPR, step(e, by_thread(e, depth, NULL), STP_SUB));
	choose->no = stmt(e, STP_S_DELETE, by_thread(e, depth, NULL));
	add(e, block, choose);
	for (size_t i = 0; i < e->n; i++) {
		const struct stp_var *kept = e->v[i].kept;

		add(e, block, stmt(e, STP_S_EXPR, assign(e, name(e, e->v[i].value, kept->pos),
							by_thread(e, kept, name(e, level, kept->pos)))));
		add(e, block, stmt(e, STP_S_DELETE, by_thread(e, kept, name(e, level, kept->pos))));
	}
	return block;
}

struct stp_stmt *stp_split_entries(struct stp_prog *prog, struct stp_handler *h)
{
	struct entries e = { .arena = prog->arena, .prog = prog, .at_return = h->kind == STP_P_RETURN };
	struct stp_stmt **blocks, *block;
	struct stp_var *depth;

	for (size_t i = 0; i < h->nblocks; i++)
		take_stmt(&e, &h->blocks[i]);
	if (!e.n)
		return NULL;
	depth = array(&e, arena_printf(e.arena, "_entry_depth%zu", prog->nentries), h->pos);
	blocks = arena_alloc(e.arena, (h->nblocks + 1) * sizeof(*blocks));
	blocks[0] = prologue(&e, depth);
	memcpy(blocks + 1, h->blocks, h->nblocks * sizeof(*blocks));
	h->blocks = blocks;
	h->nblocks = h->blocks_cap = h->nblocks + 1;
	block = stmt(&e, STP_S_BLOCK, name(&e, depth->name, depth->pos));
	block->expr = NULL;
	add(&e, block, stmt(&e, STP_S_EXPR, step(&e, by_thread(&e, depth, NULL), STP_ADD)));
	for (size_t i = 0; i < e.n; i++)
		add(&e, block, stmt(&e, STP_S_EXPR, assign(&e, by_thread(&e, e.v[i].kept, by_thread(&e, depth, NULL)),
							   e.v[i].expr)));
	return block;
}
