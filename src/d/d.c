#include "d/d.h"

#include <assert.h>

#include "base/arena.h"
#include "d/attr.h"
#include "d/check.h"
#include "d/lib.h"
#include "d/lower.h"
#include "ir/ir.h"

enum { STRSIZE_DEFAULT = 256 };

struct d {
	struct arena *arena;
	struct diag *diag;
	struct d_prog *prog;
	struct d_opts opts;
};

struct d *d_new(struct arena *a, struct diag *diag, const struct d_macros *m)
{
	struct d *d = arena_new_of(a, struct d);

	d->arena = a;
	d->diag = diag;
	d->prog = d_prog_new(a, diag, m);
	return d;
}

void d_use(struct d *d, const struct type_source *types, struct d_libs *libs)
{
	types_set_source(d->prog->types, types);
	d_libs_use(d->prog, libs);
}

bool d_add(struct d *d, const struct source *src, enum d_spec spec)
{
	return d_parse(d->prog, src, spec);
}

bool d_end(struct d *d)
{
	return d_parse_end(d->prog);
}

const struct d_pragma *d_option(const struct d *d, size_t i)
{
	for (size_t k = 0; k < d->prog->nitems; k++) {
		const struct d_item *it = &d->prog->items[k];

		if (it->kind == D_ITEM_PRAGMA && it->pragma->kind == D_PRAGMA_OPTION && i-- == 0)
			return it->pragma;
	}
	return NULL;
}

const struct probe_desc *d_descs(struct d *d, size_t *n)
{
	struct probe_desc *all = NULL;
	size_t cap = 0;

	*n = 0;
	for (size_t k = 0; k < d->prog->nitems; k++) {
		const struct d_item *it = &d->prog->items[k];

		if (it->kind != D_ITEM_CLAUSE)
			continue;
		for (size_t i = 0; i < it->clause->ndescs; i++) {
			all = arena_grow(d->arena, all, &cap, *n, sizeof(*all));
			all[(*n)++] = it->clause->descs[i];
		}
	}
	return all;
}

size_t d_nclauses(const struct d *d)
{
	size_t n = 0;

	for (size_t k = 0; k < d->prog->nitems; k++)
		n += d->prog->items[k].kind == D_ITEM_CLAUSE;
	return n;
}

const struct d_prog *d_tree(const struct d *d)
{
	return d->prog;
}

static uint32_t strsize_for(uint32_t asked)
{
	if (!asked)
		return STRSIZE_DEFAULT;
	if (asked < IR_STRSIZE_MIN)
		return IR_STRSIZE_MIN;
	return asked > IR_STRSIZE_MAX ? IR_STRSIZE_MAX : asked;
}

struct ir_prog *d_compile(struct d *d, const struct resolver *resolver, const struct d_opts *opts)
{
	struct ir_prog *p;
	struct check c;
	bool right;

	if (d->diag->errors)
		return NULL;
	d->opts = *opts;
	d->opts.strsize = strsize_for(opts->strsize);
	check_init(&c, d->prog, d->diag, resolver, &d->opts);
	right = check_prog(&c);
	if (d->opts.amin && !attr_enforce(d->prog, d->opts.amin, d->diag))	/* a name's attributes do not hang on its types */
		return NULL;
	if (!right)
		return NULL;
	p = lower_prog(&c, d->opts.strsize);
	assert(!p || !ir_check(p));	/* a refusal would be a bug in dtap, not a mistake in the script */
	return p;
}
