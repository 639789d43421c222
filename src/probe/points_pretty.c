/*
 * Pretty-printing of C variables: $name$ expands one level, $name$$ nested structures, too, $$parms$ each of several
 * variables.
 *
 * The result is a format and the sources of its values (STP_SRC_FORMAT).  Language reference: "Pretty-printing".
 */
#include "probe/points_walk.h"

#include <string.h>

#include "base/arena.h"
#include "base/strbuf.h"
#include "elf/obj.h"

enum { MAX_ELEMENTS = 8, MAX_LEVELS = 6 };

struct pretty {
	struct points *p;
	struct strbuf format;
	struct stp_source *items;
	size_t n;
	unsigned int level, levels;	/* current nesting; nesting that is expanded */
	struct walk at;			/* the structure whose members are shown */
	bool first;
};

static void pretty(struct pretty *to, const struct walk *at);

/* Print the value of @at by @conv. */
static void pretty_item(struct pretty *to, const struct walk *at, const char *conv, enum stp_type type)
{
	static const struct stp_node plain = { .kind = STP_TARGET };
	struct stp_source *item = &to->items[to->n];
	struct walk w = *at;

	if (to->n == WALK_MAX_ITEMS) {
		strbuf_puts(&to->format, "...");
		return;
	}
	*item = *at->source;
	w.source = item;
	if (!walk_fetch(&w, &plain)) {
		strbuf_puts(&to->format, "?");
		return;
	}
	item->type = type;
	strbuf_puts(&to->format, conv);
	to->n++;
}

static void pretty_member(void *ctx, const struct debug_member *m)
{
	struct pretty *to = ctx;
	struct walk at = to->at;

	walk_to(&at, m);
	strbuf_printf(&to->format, "%s%s%s%s", to->first ? "" : ", ", m->name ? "." : "", m->name ? m->name : "",
		      m->name ? "=" : "");
	to->first = false;
	if (m->why)
		strbuf_puts(&to->format, "?");
	else
		pretty(to, &at);
	to->first = false;
}

static void pretty_struct(struct pretty *to, const struct walk *at, const Dwarf_Die *bare)
{
	struct walk outer = to->at;

	if (to->level == to->levels || !(at->in_memory || at->nparts)) {
		strbuf_puts(&to->format, "{...}");
		return;
	}
	strbuf_puts(&to->format, "{");
	to->level++;
	to->at = *at;
	to->first = true;
	debug_each_member(bare, pretty_member, to);
	to->at = outer;
	to->level--;
	strbuf_puts(&to->format, "}");
}

/* An array of several dimensions is an array of arrays. */
static void pretty_array(struct pretty *to, const struct walk *at, const Dwarf_Die *bare)
{
	uint64_t n = debug_count(bare, at->dim), i;
	bool last = at->dim + 1 >= debug_dims(bare);
	struct walk w = *at;
	Dwarf_Die target;
	int64_t size;

	if (!debug_target(bare, &target)) {
		strbuf_puts(&to->format, "?");
		return;
	}
	if (last && debug_is_char(&target)) {
		pretty_item(to, at, "%s", STP_STRINGS);
		if (to->n && n < UINT32_MAX)
			to->items[to->n - 1].size = (uint32_t)n;
		return;
	}
	if (to->level == to->levels || !n || !(at->in_memory || at->nparts)) {
		strbuf_puts(&to->format, "[...]");
		return;
	}
	size = (int64_t)(debug_size(&target) * walk_inner_count(bare, at->dim));
	w.dim++;
	if (last) {
		w.type = target;
		w.dim = 0;
	}
	strbuf_puts(&to->format, "[");
	to->level++;
	for (i = 0; i < n && i < MAX_ELEMENTS; i++) {
		strbuf_puts(&to->format, i ? ", " : "");
		pretty(to, &w);
		walk_move(&w, 1, size);
	}
	strbuf_puts(&to->format, i < n ? ", ...]" : "]");
	to->level--;
}

/* A pointer to a structure is followed only at the outermost level. */
static void pretty(struct pretty *to, const struct walk *at)
{
	struct debug_shape shape, inner;
	struct stp_source copy = *at->source;
	struct walk w = *at;
	Dwarf_Die bare, target, its;

	w.source = &copy;
	debug_shape(&at->type, &bare, &shape);
	switch (shape.kind) {
	case DEBUG_INT:
		pretty_item(to, at, shape.sign ? "%d" : "%u", STP_LONG);
		break;
	case DEBUG_STRUCT:
		pretty_struct(to, at, &bare);
		break;
	case DEBUG_ARRAY:
		pretty_array(to, at, &bare);
		break;
	case DEBUG_POINTER:
		if (!debug_target(&bare, &target)) {
			pretty_item(to, at, "%#x", STP_LONG);
			break;
		}
		debug_shape(&target, &its, &inner);
		if (debug_is_char(&target))
			pretty_item(to, at, "%s", STP_STRINGS);
		else if (inner.kind == DEBUG_STRUCT && !to->level && walk_deref(&w, &bare))
			pretty_struct(to, &w, &its);
		else
			pretty_item(to, at, "%#x", STP_LONG);
		break;
	default:
		strbuf_puts(&to->format, "?");
		break;
	}
}

/* Print the value at the end of the walk. */
bool walk_print(struct walk *w, unsigned int levels)
{
	struct pretty to = { .p = w->p, .levels = levels > 1 ? MAX_LEVELS : 1 };

	to.items = arena_alloc(w->p->arena, WALK_MAX_ITEMS * sizeof(*to.items));
	pretty(&to, w);
	*w->source = (struct stp_source){ .kind = STP_SRC_FORMAT, .type = STP_STRINGS, .items = to.items, .nnames = to.n };
	w->source->text = arena_strdup(w->p->arena, strbuf_str(&to.format));
	strbuf_fini(&to.format);
	return true;
}

struct pretty_list {
	struct pretty to;
	const struct points_found *f;
};

static void pretty_var(void *ctx, const char *name, const Dwarf_Die *type)
{
	struct pretty_list *l = ctx;
	struct stp_source source = { 0 };
	struct walk w = { .p = l->to.p, .file = l->f->file, .source = &source };
	struct debug_var v;

	(void)type;
	strbuf_printf(&l->to.format, "%s%s=", l->to.format.len ? " " : "", name);
	if (debug_var(obj_debug(l->f->file->obj), l->f->pc, l->f->inlined, name, &v) || !walk_begin(&w, l->f, &v))
		strbuf_puts(&l->to.format, "?");
	else
		pretty(&l->to, &w);
}

/* $$vars$, $$parms$ and $$locals$. */
bool points_list_pretty(struct points *p, const struct points_found *f, bool parms, bool locals, unsigned int levels,
			struct stp_source *source)
{
	struct pretty_list l = { .to = { .p = p, .levels = levels > 1 ? MAX_LEVELS : 1 }, .f = f };

	l.to.items = arena_alloc(p->arena, WALK_MAX_ITEMS * sizeof(*l.to.items));
	debug_each_var(obj_debug(f->file->obj), f->pc, f->inlined, parms, false, pretty_var, &l);
	debug_each_var(obj_debug(f->file->obj), f->pc, f->inlined, false, locals, pretty_var, &l);
	*source = (struct stp_source){ .kind = STP_SRC_FORMAT, .type = STP_STRINGS, .items = l.to.items,
				       .nnames = l.to.n };
	source->text = arena_strdup(p->arena, strbuf_str(&l.to.format));
	strbuf_fini(&l.to.format);
	return true;
}
