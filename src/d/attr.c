#include "d/attr.h"

#include <stdio.h>
#include <string.h>

#include "base/strbuf.h"
#include "lang/diag.h"

static const char *const stabilities[] = { "Internal", "Private", "Obsolete", "External", "Unstable", "Evolving", "Stable",
					   "Standard" };
static const char *const classes[] = { "Unknown", "CPU", "Platform", "Group", "ISA", "Common" };

static const struct d_attr stable = { STAB_STABLE, STAB_STABLE, CLASS_COMMON };
static const struct d_attr lowest = { STAB_INTERNAL, STAB_INTERNAL, CLASS_UNKNOWN };
static const struct d_attr symbol = { STAB_PRIVATE, STAB_PRIVATE, CLASS_UNKNOWN };	/* mod`name */

enum part { PROVIDER, MODULE, FUNCTION, NAME, ARGS };

#define ATTR(NAME, DATA, CLASS) { STAB_##NAME, STAB_##DATA, CLASS_##CLASS }

static const struct provider_attr {
	const char *name;
	struct d_attr parts[5];
} providers[] = {
#define D_PROVIDER_ATTR(NAME, P1, P2, P3, M1, M2, M3, F1, F2, F3, N1, N2, N3, A1, A2, A3) \
	{ NAME, { ATTR(P1, P2, P3), ATTR(M1, M2, M3), ATTR(F1, F2, F3), ATTR(N1, N2, N3), ATTR(A1, A2, A3) } },
#include "d/attrs.def"
#undef D_PROVIDER_ATTR
};

static const struct {
	const char *name;
	struct d_attr attr;
} idents[] = {
#define D_IDENT_ATTR(NAME, A, B, C) { NAME, ATTR(A, B, C) },
#include "d/attrs.def"
#undef D_IDENT_ATTR
};

/* --- attributes --------------------------------------------------------------------------------------- */

const char *attr_stability(uint8_t stability)
{
	return stabilities[stability];
}

const char *attr_class(uint8_t class)
{
	return classes[class];
}

void attr_put(struct strbuf *out, struct d_attr a)
{
	strbuf_printf(out, "\t\tIdentifier Names: %s\n\t\tData Semantics:   %s\n\t\tDependency Class: %s\n",
		      attr_stability(a.name), attr_stability(a.data), attr_class(a.class));
}

static bool word(const char *const *words, size_t n, const char *s, size_t len, uint8_t *ret)
{
	for (size_t i = 0; i < n; i++) {
		if (strlen(words[i]) != len || strncmp(words[i], s, len))
			continue;
		*ret = (uint8_t)i;
		return true;
	}
	return false;
}

bool attr_parse(const char *text, struct d_attr *ret)
{
	const size_t nstab = sizeof(stabilities) / sizeof(stabilities[0]), nclass = sizeof(classes) / sizeof(classes[0]);
	const char *one = strchr(text, '/'), *two = one ? strchr(one + 1, '/') : NULL;

	return two && word(stabilities, nstab, text, (size_t)(one - text), &ret->name) &&
	       word(stabilities, nstab, one + 1, (size_t)(two - one - 1), &ret->data) &&
	       word(classes, nclass, two + 1, strlen(two + 1), &ret->class);
}

static void lower_to(struct d_attr *a, struct d_attr b)
{
	if (b.name < a->name)
		a->name = b.name;
	if (b.data < a->data)
		a->data = b.data;
	if (b.class < a->class)
		a->class = b.class;
}

static bool is_less(struct d_attr a, const struct d_attr *min)
{
	return a.name < min->name || a.data < min->data || a.class < min->class;
}

/* --- what names have ---------------------------------------------------------------------------------- */

/* The attributes that the last #pragma D attributes of @prog (may be NULL) gives @what.  False: there is none. */
static bool said(const struct d_prog *prog, const char *what, struct d_attr *ret)
{
	bool found = false;

	for (size_t i = 0; prog && i < prog->nitems; i++) {
		const struct d_pragma *p = prog->items[i].pragma;

		if (prog->items[i].kind == D_ITEM_PRAGMA && p->kind == D_PRAGMA_ATTRIBUTES && !strcmp(p->value, what))
			found = attr_parse(p->name, ret);
	}
	return found;
}

/* Is @row the row for provider @prov?  For a pattern, it is the first row whose name begins like the pattern. */
static bool is_provider(const char *row, const char *prov)
{
	size_t len = strlen(row), wild = strcspn(prov, "*?[");

	if (prov[wild])
		return !*row || (wild && !strncmp(row, prov, wild < len ? wild : len));
	if (len && row[len - 1] == '#')
		return !strncmp(row, prov, len - 1) && strspn(prov + len - 1, "0123456789") == strlen(prov + len - 1);
	return !len || !strcmp(row, prov);
}

static struct d_attr part_of(const struct d_prog *prog, const char *prov, enum part part)
{
	static const char *const parts[] = { "provider", "module", "function", "name", "args" };
	char what[128];
	struct d_attr a;
	size_t i = 0;

	/* #pragma D attributes ... provider python module */
	snprintf(what, sizeof(what), "provider %.*s %s", (int)strcspn(prov, "0123456789*?["), prov, parts[part]);
	if (said(prog, what, &a))
		return a;
	while (!is_provider(providers[i].name, prov))
		i++;
	return providers[i].parts[part];
}

/*
 * The lowest attributes of a description's provider and of the other parts that it names.  A description without a
 * provider gets the one that has such a name.
 */
static struct d_attr desc_attr(const struct d_prog *prog, const struct probe_desc *d)
{
	const char *prov = *d->prov ? d->prov : !strncmp(d->name, "tick-", 5) || !strncmp(d->name, "profile-", 8) ? "profile" :
			   !strcmp(d->name, "BEGIN") || !strcmp(d->name, "END") || !strcmp(d->name, "ERROR") ? "dtrace" : "";
	struct d_attr a = part_of(prog, prov, PROVIDER);

	if (*d->mod)
		lower_to(&a, part_of(prog, prov, MODULE));
	if (*d->func)
		lower_to(&a, part_of(prog, prov, FUNCTION));
	if (*d->name)
		lower_to(&a, part_of(prog, prov, NAME));
	return a;
}

struct d_attr attr_of_probe(const struct probe_desc *desc, struct d_attr *args)
{
	*args = part_of(NULL, desc->prov, ARGS);
	return desc_attr(NULL, desc);
}

/* --- expressions -------------------------------------------------------------------------------------- */

/* The state of a walk through a clause's expressions. */
struct walk {
	const struct d_prog *prog;
	const struct d_clause *clause;
	struct d_attr attr;		/* the lowest so far */
	const struct d_attr *min;	/* if not NULL: @low is the first name below it, with @low_attr */
	const struct d_node *low;
	struct d_attr low_attr;
	unsigned int depth;		/* nesting of inlines */
};

enum { INLINES_MAX = 32 };

static void walk_node(struct walk *w, const struct d_node *n);

static void take(struct walk *w, const struct d_node *n, struct d_attr a)
{
	lower_to(&w->attr, a);
	if (w->min && !w->low && is_less(a, w->min)) {
		w->low = n;
		w->low_attr = a;
	}
}

static const struct d_inline *inline_of(const struct d_prog *prog, const char *name)
{
	for (size_t i = 0; i < prog->nitems; i++)
		if (prog->items[i].kind == D_ITEM_INLINE && !strcmp(prog->items[i].inl->name, name))
			return prog->items[i].inl;
	return NULL;
}

static void walk_name(struct walk *w, const struct d_node *n)
{
	const struct d_inline *inl;
	struct d_attr a = stable;

	if (n->mod) {
		take(w, n, symbol);
	} else if (n->scope != D_GLOBAL_SCOPE) {
		take(w, n, stable);
	} else if (said(w->prog, n->name, &a)) {
		take(w, n, a);
	} else if (!strcmp(n->name, "args")) {
		for (size_t i = 0; i < w->clause->ndescs; i++)
			take(w, n, part_of(w->prog, w->clause->descs[i].prov, ARGS));
	} else if ((inl = inline_of(w->prog, n->name)) && w->depth < INLINES_MAX) {
		w->depth++;
		walk_node(w, inl->expr);
		w->depth--;
	} else {
		for (size_t i = 0; i < sizeof(idents) / sizeof(idents[0]); i++)
			if (!strcmp(idents[i].name, n->name))
				a = idents[i].attr;
		take(w, n, a);
	}
}

static void walk_node(struct walk *w, const struct d_node *n)
{
	if (!n)
		return;
	if (n->kind == D_NAME)
		walk_name(w, n);
	walk_node(w, n->lhs);
	walk_node(w, n->rhs);
	walk_node(w, n->base);
	walk_node(w, n->cond);
	for (size_t i = 0; i < n->nargs; i++)
		walk_node(w, n->args[i]);
}

static void walk_block(struct walk *w, const struct d_block *b)
{
	for (size_t i = 0; b && i < b->n; i++) {
		walk_node(w, b->stmts[i]->expr);
		walk_block(w, b->stmts[i]->yes);
		walk_block(w, b->stmts[i]->no);
	}
}

static void walk_clause(struct walk *w, const struct d_prog *prog, const struct d_clause *cl, const struct d_attr *min)
{
	*w = (struct walk){ .prog = prog, .clause = cl, .attr = stable, .min = min };
	walk_node(w, cl->pred);
	walk_block(w, cl->body);
}

/* --- programs ----------------------------------------------------------------------------------------- */

struct d_attrs attr_of(const struct d_prog *prog, const struct source *src)
{
	struct d_attrs all = { stable, stable };
	struct walk w;

	for (size_t i = 0; i < prog->nitems; i++) {
		const struct d_clause *cl = prog->items[i].clause;

		if (prog->items[i].kind != D_ITEM_CLAUSE || !source_is_in(cl->pos.src, src))
			continue;
		for (size_t k = 0; k < cl->ndescs; k++)
			lower_to(&all.descs, desc_attr(prog, &cl->descs[k]));
		walk_clause(&w, prog, cl, NULL);
		lower_to(&all.stmts, w.attr);
	}
	return all;
}

static void too_low(struct diag *diag, struct src_pos pos, const char *what, const char *name, struct d_attr a)
{
	diag_error(diag, pos, "D_ATTR_MIN", "attributes for %s %s (%s/%s/%s) are less than predefined minimum", what, name,
		   stabilities[a.name], stabilities[a.data], classes[a.class]);
}

bool attr_enforce(const struct d_prog *prog, const struct d_attr *min, struct diag *diag)
{
	unsigned int before = diag->errors;
	struct walk w;

	if (!is_less(lowest, min))
		return true;
	for (size_t i = 0; i < prog->nitems; i++) {
		const struct d_clause *cl = prog->items[i].clause;

		if (prog->items[i].kind != D_ITEM_CLAUSE)
			continue;
		for (size_t k = 0; k < cl->ndescs; k++) {
			struct d_attr a = desc_attr(prog, &cl->descs[k]);

			if (is_less(a, min)) {
				too_low(diag, cl->pos, "probe description", cl->descs[k].name, a);
				break;
			}
		}
		walk_clause(&w, prog, cl, min);
		if (w.low)
			too_low(diag, w.low->pos, w.low->mod ? "symbol" : "identifier", w.low->name, w.low_attr);
	}
	return diag->errors == before;
}
