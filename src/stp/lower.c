#include "stp/lower.h"

#include <assert.h>
#include <stdarg.h>
#include <string.h>

#include "base/arena.h"
#include "base/strbuf.h"
#include "lang/diag.h"

enum { STRSIZE_MIN = 8, STRSIZE_MAX = 64 << 10 };

/* --- reports ----------------------------------------------------------------------------------------- */

void low_refuse(struct low *l, const struct stp_node *n, const char *hint, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	diag_error(l->diag, n->pos, "S_UNSUPPORTED", "semantic error: %s: %s", arena_vprintf(l->arena, fmt, ap),
		   n->what ? n->what : "keyword");
	va_end(ap);
	if (hint)
		diag_hint(l->diag, "%s", hint);
}

void low_near(struct low *l, const char *what, struct src_pos pos)
{
	struct stp_code *c = l->code;
	const struct stp_near *last = &c->nears[c->nnears - 1];

	if (last->what != what || last->pos.line != pos.line || last->pos.col != pos.col ||
	    last->pos.src != pos.src) {
		c->nears = arena_grow(l->arena, c->nears, &l->nears_cap, c->nnears, sizeof(*c->nears));
		c->nears[c->nnears++] = (struct stp_near){ what, pos };
	}
	l->b.act = c->nnears - 1;
	l->b.pos = pos;
}

ir_reg low_dummy(struct low *l, enum stp_type type)
{
	return type == STP_STRINGS ? low_str(l, "") : low_const(l, 0);
}

struct ir_slot low_slot(enum stp_type type)
{
	if (type == STP_STRINGS)
		return (struct ir_slot){ .type = IR_STR };
	return (struct ir_slot){ .type = IR_INT, .width = 8, .sign = true };
}

/* --- handlers ---------------------------------------------------------------------------------------- */

static const char *point_text(struct low *l, const struct stp_point *p)
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

static struct stp_clause *new_clause(struct low *l, struct src_pos pos, const struct stp_handler *h,
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
	ir_build(&l->b, l->prog, ic);
	l->b.pos = pos;
	l->handler = h;
	l->clause = c;
	l->loop = NULL;
	l->try = NULL;
	l->call = NULL;
	l->statements = 0;
	return c;
}

static bool has_value(const struct stp_node *init)
{
	return init && (init->kind == STP_NUM ? init->value != 0 : init->str_len != 0);
}

/* A BEGIN before all others, if a global has a value from the start. */
static void lower_inits(struct low *l)
{
	bool made = false;

	for (struct stp_var *v = l->tree->globals.first; v; v = v->next) {
		if (!has_value(v->init) || (!v->reads && !v->writes))
			continue;
		if (!made)
			new_clause(l, v->pos, NULL, STP_P_BEGIN);
		made = true;
		ir_vst(&l->b, low_var(l, v), low_expr(l, v->init));
	}
	if (made)
		ir_ret(&l->b);
}

static void lower_handler(struct low *l, const struct stp_handler *h)
{
	struct ir_block *body, *end;

	new_clause(l, h->pos, h, (enum stp_point_kind)h->kind);
	for (size_t i = 0; i < h->nconds; i++) {
		body = ir_block_new(&l->b);
		end = ir_block_new(&l->b);
		low_cond(l, h->conds[i], body, end);
		ir_at(&l->b, end);
		ir_ret(&l->b);
		ir_at(&l->b, body);
	}
	for (size_t i = 0; i < h->nblocks; i++)
		low_stmt(l, h->blocks[i]);
	low_count(l, 0, l->last_what, l->last_pos, true);
	ir_ret(&l->b);
}

static uint32_t strsize(const struct stp *stp)
{
	int64_t len = stp_get_limit(stp, STP_MAXSTRINGLEN);

	if (len < STRSIZE_MIN)
		return STRSIZE_MIN;
	return len > STRSIZE_MAX ? STRSIZE_MAX : ((uint32_t)len + 7) & ~7u;
}

struct stp_code *low_prog(struct stp *stp, struct arena *a, struct diag *diag, struct stp_prog *tree)
{
	struct low l = { .arena = a, .diag = diag, .stp = stp, .tree = tree };
	unsigned int errors = diag->errors, n = 1;

	l.prog = ir_prog_new(a, strsize(stp));
	l.code = arena_new_of(a, struct stp_code);
	l.code->prog = l.prog;
	for (const struct stp_handler *h = tree->handlers; h; h = h->next)
		n++;
	l.code->clauses = arena_alloc(a, n * sizeof(*l.code->clauses));
	l.code->nears = arena_grow(a, NULL, &l.nears_cap, 0, sizeof(*l.code->nears));
	l.code->nears[l.code->nnears++] = (struct stp_near){0};
	lower_inits(&l);
	for (const struct stp_handler *h = tree->handlers; h; h = h->next)
		lower_handler(&l, h);
	if (l.nodes > LOW_MAX_NODES)
		diag_error(diag, tree->handlers->pos, "S_SIZE",
			   "semantic error: the script's functions make a program that is too large");
	if (diag->errors != errors)
		return NULL;
	assert(!ir_check(l.prog));	/* what it refuses is dtap's mistake, never the script's */
	return l.code;
}
