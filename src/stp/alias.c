#include "stp/point.h"

#include <fnmatch.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/strbuf.h"
#include "lang/diag.h"
#include "lang/similar.h"
#include "lang/source.h"
#include "stp/subsystem.h"
#include "stp/tapset.h"

enum { MAX_ROW_COMPS = 8, MAX_HANDLERS = 20000, MAX_ALIAS_DEPTH = 100, MAX_WORK = 50000 };

/* A component of a row of points.def, read from its pattern. */
struct row_comp {
	char name[64];
	char arg;		/* 'N', 'S', or 0: none */
};

static const struct row {
	const char *pattern;
	enum stp_point_kind kind;
	int64_t low, high;
} rows[] = {
#define STP_POINT(pattern, kind, low, high) { pattern, STP_P_##kind, low, high },
#include "stp/points.def"
#undef STP_POINT
};

struct expansion {
	struct stp_probe **aliases;	/* the probes that have names */
	size_t naliases, aliases_cap;
	struct arena *arena;
	struct diag *diag;
	struct stp_prog *prog;
	const struct stp_resolver *resolver;
	const struct stp_probe *probe;		/* of the script; @written is one of its points */
	const struct stp_point *written;
	unsigned int depth, nhandlers, work;
};

/* What runs at a point: blocks and conditions collected while following aliases. */
struct load {
	struct stp_stmt **blocks;
	size_t nblocks;
	struct stp_node **conds;
	size_t nconds;
};

static unsigned int expand_point(struct expansion *x, const struct stp_point *p, const struct load *load, bool quiet);

/* --- matching ---------------------------------------------------------------------------------------- */

static bool is_pattern(const char *name)
{
	return strchr(name, '*') != NULL;
}

static bool is_pattern_point(const struct stp_point *p)
{
	for (size_t i = 0; i < p->n; i++)
		if (is_pattern(p->comps[i].name))
			return true;
	return false;
}

/* Parse the components of @s; 0: too many, or too long for any match. */
static size_t read_row(const char *s, struct row_comp comps[MAX_ROW_COMPS])
{
	size_t n = 0, len;

	while (*s) {
		struct row_comp *c = &comps[n++];

		len = strcspn(s, ".(");
		if (n > MAX_ROW_COMPS || len >= sizeof(c->name))
			return 0;
		memcpy(c->name, s, len);
		c->name[len] = '\0';
		s += len;
		c->arg = *s == '(' ? s[1] : '\0';
		s += *s == '(' ? 3 : 0;
		s += *s == '.';
	}
	return n;
}

static bool arg_fits(const struct stp_comp *c, char arg)
{
	if (!c->arg)
		return !arg;
	return arg == (c->arg->kind == STP_NUM ? 'N' : 'S');
}

/*
 * Do the components @p of a point match the names @c of something that exists?  ** matches any number of components,
 * which have no arguments; its own argument is that of the last one.  @into gets @p with each ** replaced by what it matched; it has room for all of @c.
 */
static bool match(const struct stp_comp *p, size_t np, const struct row_comp *c, size_t nc, struct stp_comp *into,
		  struct arena *a)
{
	char joined[MAX_ROW_COMPS * 66] = "";

	if (!np || !nc)
		return np == nc;
	if (!strstr(p->name, "**")) {
		if (fnmatch(p->name, c->name, FNM_NOESCAPE) || !arg_fits(p, c->arg))
			return false;
		*into = *p;
		into->name = is_pattern(p->name) ? arena_strdup(a, c->name) : p->name;
		return match(p + 1, np - 1, c + 1, nc - 1, into + 1, a);
	}
	for (size_t k = 0; k < nc && (!k || !c[k - 1].arg); k++) {
		strncat(joined, k ? "." : "", sizeof(joined) - strlen(joined) - 1);
		strncat(joined, c[k].name, sizeof(joined) - strlen(joined) - 1);
		into[k] = *p;
		into[k].name = arena_strdup(a, c[k].name);
		if (k)
			into[k - 1].arg = NULL;
		if (!fnmatch(p->name, joined, FNM_NOESCAPE) && arg_fits(p, c[k].arg) &&
		    match(p + 1, np - 1, c + k + 1, nc - k - 1, into + k + 1, a))
			return true;
	}
	return false;
}

/* The components of an alias's name in the form of a row's; 0: too many for any match. */
static size_t alias_comps(const struct stp_point *name, struct row_comp comps[MAX_ROW_COMPS])
{
	if (name->n > MAX_ROW_COMPS)
		return 0;
	for (size_t i = 0; i < name->n; i++) {
		if (strlen(name->comps[i].name) >= sizeof(comps[i].name))
			return 0;
		strcpy(comps[i].name, name->comps[i].name);
		comps[i].arg = '\0';
	}
	return name->n;
}

bool stp_point_names(const struct stp_point *pattern, const struct stp_point *name, struct arena *a)
{
	struct row_comp comps[MAX_ROW_COMPS];
	struct stp_comp into[MAX_ROW_COMPS];
	size_t n = alias_comps(name, comps);

	return n && match(pattern->comps, pattern->n, comps, n, into, a);
}

/* --- reports ----------------------------------------------------------------------------------------- */

/* How many components of @p from its start are equal to those of the row or alias. */
static size_t common(const struct stp_point *p, const struct row_comp *comps, size_t n)
{
	size_t k = 0;

	while (k < n && k < p->n && !fnmatch(p->comps[k].name, comps[k].name, FNM_NOESCAPE) && arg_fits(&p->comps[k], comps[k].arg))
		k++;
	return k;
}

typedef void known_fn(void *ctx, const struct row_comp *comps, size_t n);

struct aliases {
	known_fn *fn;
	void *ctx;
};

static void tapset_alias(void *ctx, const char *name)
{
	struct row_comp comps[MAX_ROW_COMPS];
	const struct aliases *a = ctx;

	if (*name != '_')	/* internal to the tapset */
		a->fn(a->ctx, comps, read_row(name, comps));
}

/* Call @fn for each row and alias. */
static void each_known(struct expansion *x, known_fn *fn, void *ctx)
{
	struct aliases aliases = { fn, ctx };
	struct row_comp comps[MAX_ROW_COMPS];

	for (size_t r = 0; r < sizeof(rows) / sizeof(rows[0]); r++)
		fn(ctx, comps, read_row(rows[r].pattern, comps));
	for (const struct stp_probe *probe = x->prog->probes; probe; probe = probe->next)
		for (size_t i = 0; i < probe->names.n; i++)
			fn(ctx, comps, alias_comps(probe->names.v[i], comps));
	if (x->prog->tapset)
		stp_tapset_aliases(x->prog->tapset, tapset_alias, &aliases);
}

/* The alternatives to the first component that matches nothing. */
struct instead {
	struct expansion *x;
	const struct stp_point *point;
	size_t bad;		/* its index */
	struct similar similar;
	struct strbuf follow;	/* " s(number) ms(number)" */
};

static void find_bad(void *ctx, const struct row_comp *comps, size_t n)
{
	struct instead *in = ctx;
	size_t k = common(in->point, comps, n);

	if (k > in->bad)
		in->bad = k;
}

static void add_instead(void *ctx, const struct row_comp *comps, size_t n)
{
	struct instead *in = ctx;
	const struct row_comp *c = &comps[in->bad];
	char text[80];

	if (n <= in->bad || common(in->point, comps, n) < in->bad)
		return;
	similar_add(&in->similar, arena_strdup(in->x->arena, c->name));
	snprintf(text, sizeof(text), " %s%s", c->name, c->arg == 'N' ? "(number)" : c->arg == 'S' ? "(string)" : "");
	if (!in->follow.s || !strstr(in->follow.s, text))
		strbuf_puts(&in->follow, text);
}

static const struct stp_subsystem *subsystem_of(const struct stp_point *p)
{
	struct stp_point bare = *p;
	struct strbuf name = {0};
	const struct stp_subsystem *about;

	bare.optional = bare.sufficient = false;
	bare.cond = NULL;
	stp_dump_point(&name, &bare);
	about = stp_subsystem_of(strbuf_str(&name), false);
	strbuf_fini(&name);
	return about;
}

static void refuse_point(struct expansion *x, const struct stp_comp *first, const char *tag)
{
	diag_error(x->diag, first->pos, tag, "semantic error: while resolving probe point: identifier '%s'", first->name);
}

static void no_match(struct expansion *x, const struct stp_point *p, const char *tag, const char *why)
{
	const struct stp_subsystem *about = why ? NULL : subsystem_of(p);
	const struct stp_comp *first = &p->comps[0], *bad;
	struct instead in = { .x = x, .point = p };
	struct strbuf b = { 0 };

	if (why) {
		refuse_point(x, first, tag);
		diag_hint(x->diag, "%s", why);
		return;
	}
	if (!about)
		about = subsystem_of(x->written);	/* the point of an alias does not have such a suffix */
	if (about && !about->instead) {
		diag_warn(x->diag, first->pos, "S_POINT_NEVER", "the probe never fires: it is about %s", about->what);
		return;
	}
	refuse_point(x, first, tag);
	if (about) {
		diag_hint(x->diag, "it is about %s, which dtap does not trace: %s", about->what, about->instead);
		return;
	}
	each_known(x, find_bad, &in);
	bad = &p->comps[in.bad < p->n ? in.bad : p->n - 1];
	in.similar = similar_to(bad->name);
	each_known(x, add_instead, &in);
	if (in.bad == p->n)
		strbuf_printf(&b, "probe point truncated (follow: %s)", strbuf_str(&in.follow));
	else if (!in.similar.n)
		strbuf_puts(&b, "invalid suffix for probe");
	else {
		strbuf_puts(&b, "probe point mismatch (similar: ");
		similar_print(&in.similar, &b);
		strbuf_puts(&b, ")");
	}
	diag_hint(x->diag, "%s: identifier '%s' at %s:%u:%u", strbuf_str(&b), bad->name, bad->pos.src ? bad->pos.src->name : "",
		  bad->pos.line, bad->pos.col);
	strbuf_fini(&in.follow);
	strbuf_fini(&b);
}

/* --- points that exist ------------------------------------------------------------------------------- */

/* Are the numbers of a point in range?  If not, *why tells the limits. */
static bool check_numbers(struct expansion *x, const struct row *row, const struct stp_point *p, const char **why)
{
	const struct stp_node *first = NULL, *random = NULL;

	for (size_t i = 0; i < p->n; i++) {
		const struct stp_node *arg = p->comps[i].arg;

		if (!arg || arg->kind != STP_NUM)
			continue;
		if (!strcmp(p->comps[i].name, "randomize"))
			random = arg;
		else if (!first)
			first = arg;
	}
	if (!first || row->low == row->high)
		return true;
	if (first->value < row->low || first->value > row->high) {
		*why = arena_printf(x->arena, "interval value out of range (%" PRId64 ", %" PRId64 ")", row->low,
				    row->high);
		return false;
	}
	if (random && (random->value < 0 || random->value > first->value)) {
		*why = "randomization value out of range";
		return false;
	}
	return true;
}

static unsigned int add_handlers(struct expansion *x, const struct row *row, const struct stp_point *p,
				 const struct load *load, bool quiet);

/* Add a handler with @block at the entry of the function, or system call, whose return is @p. */
static void add_entry(struct expansion *x, const struct stp_point *p, bool syscall, struct stp_stmt *block)
{
	const struct row entry = { .pattern = "", .kind = syscall ? STP_P_SYSCALL_ENTRY : STP_P_FUNCTION };
	struct stp_point *at = arena_new_of(x->arena, struct stp_point);
	struct load load = { .blocks = &block, .nblocks = 1 };

	*at = *p;
	at->n = at->cap = p->n - 1;
	at->cond = NULL;
	add_handlers(x, &entry, at, &load, false);
}

static void add_handler(struct expansion *x, const struct row *row, const struct stp_point *p,
			const struct load *load)
{
	struct stp_handler *h;

	if (x->nhandlers >= MAX_HANDLERS) {
		if (x->nhandlers++ == MAX_HANDLERS)
			diag_error(x->diag, x->written->pos, "S_POINTS", "semantic error: too many probes");
		return;
	}
	x->nhandlers++;
	h = arena_new_of(x->arena, struct stp_handler);
	h->pos = x->probe->pos;
	h->point = p;
	h->written = x->written;
	h->kind = row->kind == STP_P_CALLEE ? STP_P_FUNCTION : row->kind;
	h->locals.tail = &h->locals.first;
	h->nblocks = h->blocks_cap = load->nblocks;
	h->blocks = arena_alloc(x->arena, load->nblocks * sizeof(*h->blocks));
	for (size_t i = 0; i < load->nblocks; i++)
		h->blocks[i] = stp_copy_stmt(x->arena, load->blocks[i]);
	h->conds = arena_alloc(x->arena, (load->nconds + 2) * sizeof(*h->conds));
	if (p->filter)
		h->conds[h->nconds++] = p->filter;
	for (size_t i = 0; i < load->nconds; i++)
		h->conds[h->nconds++] = stp_copy_node(x->arena, load->conds[i]);
	h->conds_cap = h->nconds;
	*x->prog->handlers_tail = h;
	x->prog->handlers_tail = &h->next;
	if (h->kind == STP_P_RETURN || h->kind == STP_P_SYSCALL_RETURN) {
		struct stp_stmt *block = stp_split_entries(x->prog, h);

		if (block)
			add_entry(x, p, h->kind == STP_P_SYSCALL_RETURN, block);
	}
}

/* Add a handler for each existing point that @p, a point of the row, matches.  Returns their number. */
static unsigned int add_handlers(struct expansion *x, const struct row *row, const struct stp_point *p,
				 const struct load *load, bool quiet)
{
	const struct stp_point **found = &p;
	const char *why = NULL;
	size_t n = 1;

	if (!check_numbers(x, row, p, &why)) {
		if (!quiet)
			no_match(x, p, "S_POINT_RANGE", why);
		return 0;
	}
	if (x->resolver)
		n = x->resolver->find(x->resolver->ctx, p, row->kind, &found, &why);
	if (!n && !quiet)
		no_match(x, p, "S_POINT_NONE", why ? why : "no match");
	for (size_t i = 0; i < n; i++)
		add_handler(x, row, found[i], load);
	return (unsigned int)n;
}

static unsigned int expand_rows(struct expansion *x, const struct stp_point *p, const struct load *load, bool quiet,
				bool *matched)
{
	struct row_comp comps[MAX_ROW_COMPS];
	struct stp_comp into[MAX_ROW_COMPS];
	unsigned int n = 0;

	for (size_t r = 0; r < sizeof(rows) / sizeof(rows[0]); r++) {
		size_t nc = read_row(rows[r].pattern, comps);
		struct stp_point *found;

		if (!match(p->comps, p->n, comps, nc, into, x->arena))
			continue;
		*matched = true;
		found = arena_new_of(x->arena, struct stp_point);
		*found = *p;
		found->n = found->cap = nc;
		found->comps = arena_alloc(x->arena, nc * sizeof(*found->comps));
		memcpy(found->comps, into, nc * sizeof(*found->comps));
		n += add_handlers(x, &rows[r], found, load, quiet || is_pattern_point(p));
	}
	return n;
}

/* --- aliases ----------------------------------------------------------------------------------------- */

/* Is the variable @of assigned to? */
struct written {
	const struct load *load;
	const struct stp_node *of;
	bool found;
};

static void find_write(void *ctx, struct stp_node **child)
{
	const struct stp_node *n = *child;
	struct written *w = ctx;

	if ((n->kind == STP_ASSIGN || n->kind == STP_PRE || n->kind == STP_POST) && n->l->kind == w->of->kind &&
	    n->l->name && w->of->name && !strcmp(n->l->name, w->of->name))
		w->found = true;
	stp_each_node(*child, find_write, w);
}

static void find_write_stmt(void *ctx, struct stp_stmt **child)
{
	stp_each_expr(*child, find_write, ctx);
	stp_each_stmt(*child, find_write_stmt, ctx);
}

/* @probewrite(var) becomes 1 where the probe that uses the alias assigns to the variable, else 0. */
static void settle_written(void *ctx, struct stp_node **child)
{
	struct stp_node *n = *child;
	struct written *w = ctx;

	if (n->kind != STP_WRITTEN) {
		stp_each_node(n, settle_written, ctx);
		return;
	}
	w->of = n->l;
	w->found = false;
	for (size_t i = 0; i < w->load->nblocks; i++)
		find_write_stmt(w, &w->load->blocks[i]);
	n->kind = STP_NUM;
	n->value = w->found;
	n->l = NULL;
}

static void settle_written_stmt(void *ctx, struct stp_stmt **child)
{
	stp_each_expr(*child, settle_written, ctx);
	stp_each_stmt(*child, settle_written_stmt, ctx);
}

/* An alias's block for the handler whose other blocks are @load. */
static struct stp_stmt *alias_block(struct expansion *x, const struct stp_stmt *block, const struct load *load)
{
	struct written w = { .load = load };
	struct stp_stmt *copy = stp_copy_stmt(x->arena, block);

	settle_written_stmt(&w, &copy);
	return copy;
}

/* Expand all points of @probe, with the components of @p behind the alias's name as their suffix. */
static unsigned int expand_alias(struct expansion *x, struct stp_probe *probe, const struct stp_point *p,
				 size_t prefix, const struct load *load, bool quiet)
{
	struct load with = *load;
	unsigned int n = 0, one;

	if (probe->expanding || x->depth >= MAX_ALIAS_DEPTH) {
		if (!quiet)
			diag_error(x->diag, p->pos, "S_ALIAS_LOOP",
				   "semantic error: recursive loop in alias expansion of %s", p->comps[0].name);
		return 0;
	}
	with.blocks = arena_alloc(x->arena, (load->nblocks + 2) * sizeof(*with.blocks));
	memcpy(with.blocks + !probe->epilogue, load->blocks, load->nblocks * sizeof(*with.blocks));
	with.blocks[probe->epilogue ? load->nblocks : 0] = alias_block(x, probe->body, load);
	with.nblocks++;
	if (probe->after)
		with.blocks[with.nblocks++] = alias_block(x, probe->after, load);
	probe->expanding = true;
	x->depth++;
	for (size_t i = 0; i < probe->points.n; i++) {
		struct stp_point *to = arena_new_of(x->arena, struct stp_point);
		const struct stp_point *from = probe->points.v[i];

		*to = *from;
		if (p->n > prefix) {
			to->n = to->cap = from->n + p->n - prefix;
			to->comps = arena_alloc(x->arena, to->n * sizeof(*to->comps));
			memcpy(to->comps, from->comps, from->n * sizeof(*to->comps));
			memcpy(to->comps + from->n, p->comps + prefix, (p->n - prefix) * sizeof(*to->comps));
		}
		one = expand_point(x, to, &with, quiet);
		n += one;
		if (one && from->sufficient)
			break;
	}
	x->depth--;
	probe->expanding = false;
	return n;
}

static unsigned int expand_aliases(struct expansion *x, const struct stp_point *p, size_t prefix,
				   const struct load *load, bool quiet, bool *matched)
{
	struct row_comp comps[MAX_ROW_COMPS];
	struct stp_comp into[MAX_ROW_COMPS];
	unsigned int n = 0;

	for (size_t k = 0; k < x->naliases; k++) {
		struct stp_probe *probe = x->aliases[k];

		for (size_t i = 0; i < probe->names.n; i++) {
			size_t nc = alias_comps(probe->names.v[i], comps);

			if (!nc || !match(p->comps, prefix, comps, nc, into, x->arena))
				continue;
			*matched = true;
			n += expand_alias(x, probe, p, prefix, load, quiet || is_pattern_point(p));
		}
	}
	return n;
}

/* --- the whole --------------------------------------------------------------------------------------- */

/* Expand @p.  Returns the number of handlers. */
static unsigned int expand_point(struct expansion *x, const struct stp_point *p, const struct load *load, bool quiet)
{
	struct load with = *load;
	unsigned int n, errors = x->diag->errors;
	bool matched = false;

	if (++x->work >= MAX_WORK) {
		if (x->work == MAX_WORK)
			diag_error(x->diag, x->probe->pos, "S_POINTS", "semantic error: aliases nested without end");
		return 0;
	}
	if (p->cond) {
		with.conds = arena_alloc(x->arena, (load->nconds + 1) * sizeof(*with.conds));
		if (load->nconds)
			memcpy(with.conds, load->conds, load->nconds * sizeof(*with.conds));
		with.conds[with.nconds++] = p->cond;
	}
	quiet |= p->optional;
	n = expand_rows(x, p, &with, quiet, &matched);
	n += expand_aliases(x, p, p->n, &with, quiet, &matched);
	for (size_t prefix = p->n - 1; prefix && !matched; prefix--)
		n += expand_aliases(x, p, prefix, &with, quiet, &matched);
	if (!n && !quiet && x->diag->errors == errors)
		no_match(x, p, "S_POINT_NONE", matched ? "no match" : NULL);
	return n;
}

/* Check that the components of an alias's name are plain names. */
static void check_alias_name(struct expansion *x, const struct stp_point *name)
{
	for (size_t k = 0; k < name->n; k++) {
		const struct stp_comp *c = &name->comps[k];

		if (c->arg || is_pattern(c->name))
			diag_error(x->diag, c->pos, "S_ALIAS_NAME",
				   "semantic error: alias component %s contains illegal %s", c->name,
				   c->arg ? "parameter" : "wildcard");
	}
}

bool stp_expand(struct stp_prog *prog, struct diag *diag, const struct stp_resolver *resolver)
{
	struct expansion x = { .arena = prog->arena, .diag = diag, .prog = prog, .resolver = resolver };
	unsigned int errors = diag->errors, n;

	for (struct stp_probe *probe = prog->probes; probe; probe = probe->next) {
		if (!probe->names.n)
			continue;
		x.aliases = arena_grow(x.arena, x.aliases, &x.aliases_cap, x.naliases, sizeof(*x.aliases));
		x.aliases[x.naliases++] = probe;
		for (size_t i = 0; i < probe->names.n; i++)
			check_alias_name(&x, probe->names.v[i]);
	}
	for (struct stp_probe *probe = prog->probes; probe; probe = probe->next) {
		struct load load = { .blocks = &probe->body, .nblocks = 1 };

		if (probe->names.n)
			continue;
		for (size_t i = 0; i < probe->points.n; i++) {
			x.probe = probe;
			x.written = probe->points.v[i];
			n = expand_point(&x, x.written, &load, false);
			if (n && x.written->sufficient)
				break;
		}
	}
	return diag->errors == errors;
}
