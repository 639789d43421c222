#include "lib/stp_list.h"

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/strbuf.h"
#include "lang/diag.h"
#include "probe/points.h"
#include "stp/point.h"
#include "stp/sem.h"
#include "stp/stp.h"

/* Lines that are printed sorted, each once. */
struct lines {
	struct arena *arena;
	char **v;
	size_t n, cap;
};

static void add_line(struct lines *l, const char *text)
{
	l->v = arena_grow(l->arena, l->v, &l->cap, l->n, sizeof(*l->v));
	l->v[l->n++] = arena_strdup(l->arena, text);
}

static int by_text(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static unsigned int put_lines(struct strbuf *out, struct lines *l)
{
	unsigned int n = 0;

	if (l->n)
		qsort(l->v, l->n, sizeof(*l->v), by_text);
	for (size_t i = 0; i < l->n; i++) {
		if (i && !strcmp(l->v[i], l->v[i - 1]))
			continue;
		strbuf_printf(out, "%s\n", l->v[i]);
		n++;
	}
	return n;
}

/* --- -l and -L ---------------------------------------------------------------------------------------- */

/* One line: an alias or a point, and the handlers that it expands to, of a point those of its inlined copies. */
struct listed {
	const char *text;
	const struct stp_handler **v;
	size_t n, cap;
};

struct list {
	struct arena *arena;
	struct stp_prog *prog;
	struct stp_probe *probe;	/* the listed probe; it gets one point after the other */
	struct stp_resolver resolver;
	struct listed *v;
	size_t n, cap;
};

/* The point of @h as it is listed. */
static const char *point_text(struct list *l, const struct stp_handler *h)
{
	struct stp_point plain = *h->point;
	struct strbuf b = { 0 };
	const char *text;

	plain.optional = plain.sufficient = false;
	plain.cond = NULL;
	stp_dump_point(&b, &plain);
	text = arena_strdup(l->arena, strbuf_str(&b));
	strbuf_fini(&b);
	return text;
}

/* Add @h to the line @text: one of those from @from on, or a new one. */
static void add_to(struct list *l, size_t from, const char *text, const struct stp_handler *h)
{
	size_t i = from;

	while (i < l->n && strcmp(l->v[i].text, text))
		i++;
	if (i == l->n) {
		l->v = arena_grow(l->arena, l->v, &l->cap, l->n, sizeof(*l->v));
		l->v[l->n++] = (struct listed){ .text = text };
	}
	l->v[i].v = arena_grow(l->arena, l->v[i].v, &l->v[i].cap, l->v[i].n, sizeof(*l->v[i].v));
	l->v[i].v[l->v[i].n++] = h;
}

/* Expand the probe with @point as its only point.  @alias: the alias's text, NULL: @point is no alias. */
static void add_expanded(struct list *l, struct stp_point *point, const char *alias)
{
	struct stp_handler **tail = l->prog->handlers_tail;
	size_t from = l->n;
	struct diag quiet;

	diag_init(&quiet, l->arena);
	l->probe->points.v = &point;
	l->probe->points.n = 1;
	stp_expand(l->prog, &quiet, &l->resolver);
	for (struct stp_handler *h = *tail; h; h = h->next)
		add_to(l, from, alias ? alias : point_text(l, h), h);
}

/* Is @text one of the texts in @b, each of which begins with a space? */
static bool has_text(const struct strbuf *b, const char *text, size_t len)
{
	for (const char *s = strbuf_str(b); (s = strstr(s, text)); s++)
		if (!strncmp(s, text, len) && (!s[len] || (s[len] == ' ' && s[len + 1] == '$')))
			return true;
	return false;
}

/* The context variables that all of @l's points have. */
static void put_context(struct points *points, const struct listed *l, struct strbuf *out)
{
	struct strbuf all = { 0 }, one = { 0 }, text = { 0 };
	bool everywhere;
	const char *next;

	points_vars(points, l->v[0]->point, &all);
	for (const char *s = strbuf_str(&all); *s; s = next) {
		next = strstr(s + 1, " $");
		if (!next)
			next = s + strlen(s);
		strbuf_clear(&text);
		strbuf_add(&text, s, (size_t)(next - s));
		everywhere = true;
		for (size_t i = 1; i < l->n && everywhere; i++) {
			strbuf_clear(&one);
			points_vars(points, l->v[i]->point, &one);
			everywhere = has_text(&one, text.s, text.len);
		}
		if (everywhere)
			strbuf_puts(out, text.s);
	}
	strbuf_fini(&all);
	strbuf_fini(&one);
	strbuf_fini(&text);
}

/* The variables that the alias has at all of its points. */
static void put_locals(const struct listed *l, struct strbuf *out)
{
	for (const struct stp_var *v = l->v[0]->locals.first; v; v = v->next) {
		size_t i = 1;

		while (i < l->n && stp_var_find(&l->v[i]->locals, v->name))
			i++;
		if (i == l->n)
			strbuf_printf(out, " %s:%s", v->name, stp_type_text(v->type));
	}
}

static unsigned int put_list(struct strbuf *out, const struct list *l, struct points *points, bool vars)
{
	struct lines lines = { .arena = l->arena };
	struct strbuf b = { 0 };

	for (size_t i = 0; i < l->n; i++) {
		strbuf_clear(&b);
		strbuf_puts(&b, l->v[i].text);
		if (vars) {
			put_locals(&l->v[i], &b);
			put_context(points, &l->v[i], &b);
		}
		add_line(&lines, strbuf_str(&b));
	}
	strbuf_fini(&b);
	return put_lines(out, &lines);
}

unsigned int stp_list_points(struct strbuf *out, struct stp *stp, struct points *points, bool vars)
{
	struct stp_prog *prog = stp_parsed(stp);
	struct list l = { .arena = prog->arena, .prog = prog, .probe = prog->probes, .resolver = points_resolver(points) };
	struct stp_points written;
	struct strbuf name = { 0 };

	while (l.probe && (l.probe->names.n || l.probe->from_library))
		l.probe = l.probe->next;
	if (!l.probe)
		return 0;
	written = l.probe->points;
	for (size_t i = 0; i < written.n; i++) {
		size_t before = l.n;

		for (struct stp_probe *a = prog->probes; a; a = a->next) {
			for (size_t k = 0; k < a->names.n; k++) {
				if (!stp_point_names(written.v[i], a->names.v[k], l.arena))
					continue;
				strbuf_clear(&name);
				stp_dump_point(&name, a->names.v[k]);
				add_expanded(&l, a->names.v[k], arena_strdup(l.arena, strbuf_str(&name)));
			}
		}
		if (l.n == before)
			add_expanded(&l, written.v[i], NULL);
	}
	strbuf_fini(&name);
	if (vars)
		stp_find_locals(stp, &l.resolver);
	return put_list(out, &l, points, vars);
}

/* --- --dump ------------------------------------------------------------------------------------------- */

void stp_list_types(struct strbuf *out)
{
	static const char *const rows[] = {
#define STP_POINT(pattern, kind, low, high) pattern,
#include "stp/points.def"
#undef STP_POINT
	};
	struct lines l = { .arena = arena_new() };
	struct strbuf b = { 0 };

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		strbuf_clear(&b);
		for (const char *s = rows[i]; *s; s++) {
			if (s[0] == '(' && s[2] == ')') {
				strbuf_puts(&b, s[1] == 'N' ? "(number)" : "(string)");
				s += 2;
			} else {
				strbuf_putc(&b, *s);
			}
		}
		add_line(&l, strbuf_str(&b));
	}
	put_lines(out, &l);
	strbuf_fini(&b);
	arena_free(l.arena);
}

void stp_list_aliases(struct strbuf *out, const struct stp_prog *prog)
{
	struct lines l = { .arena = prog->arena };
	struct strbuf b = { 0 };

	for (const struct stp_probe *p = prog->probes; p; p = p->next) {
		for (size_t i = 0; i < p->names.n; i++) {
			if (*p->names.v[i]->comps[0].name == '_')
				continue;
			strbuf_clear(&b);
			stp_dump_point(&b, p->names.v[i]);
			strbuf_puts(&b, p->epilogue ? " += " : " = ");
			for (size_t k = 0; k < p->points.n; k++) {
				if (k)
					strbuf_puts(&b, ", ");
				stp_dump_point(&b, p->points.v[k]);
			}
			add_line(&l, strbuf_str(&b));
		}
	}
	put_lines(out, &l);
	strbuf_fini(&b);
}

static void put_function(struct strbuf *b, const struct stp_func *f)
{
	strbuf_printf(b, "%s:%s (", f->name, stp_type_text(f->type));
	for (const struct stp_var *v = f->params.first; v; v = v->next)
		strbuf_printf(b, "%s%s:%s", v == f->params.first ? "" : ", ", v->name, stp_type_text(v->type));
	strbuf_putc(b, ')');
}

void stp_list_functions(struct strbuf *out, const struct stp_prog *prog, bool all)
{
	static const struct {
		const char *name, *proto, *effect, *how;
	} rows[] = {
#define STP_FUNC(name, proto, effect, how) { #name, proto, #effect, #how },
#include "stp/functions.def"
#undef STP_FUNC
	};
	struct lines l = { .arena = prog->arena };
	struct strbuf b = { 0 };

	for (const struct stp_func *f = prog->funcs; f; f = f->next) {
		if (f->is_private || (!all && *f->name == '_'))
			continue;
		strbuf_clear(&b);
		put_function(&b, f);
		add_line(&l, strbuf_str(&b));
	}
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		static const char *const types[] = { ['l'] = "long", ['s'] = "string", ['v'] = "unknown" };
		const char *s = rows[i].proto;

		if (!all && *rows[i].name == '_')
			continue;
		strbuf_clear(&b);
		strbuf_printf(&b, "%s:%s (", rows[i].name, types[(unsigned char)*s]);
		for (s += 2; *s != ')'; s++)
			strbuf_printf(&b, "%sarg%d:%s", s > rows[i].proto + 2 ? ", " : "",
				      (int)(s - rows[i].proto - 1), types[(unsigned char)*s]);
		strbuf_putc(&b, ')');
		if (all && !strcmp(rows[i].effect, "PURE"))
			strbuf_puts(&b, " /* pure */");
		if (!strncmp(rows[i].how, "GURU", 4))
			strbuf_puts(&b, " /* guru */");
		else if (!strcmp(rows[i].effect, "PURE"))
			strbuf_puts(&b, " /* unprivileged */");
		add_line(&l, strbuf_str(&b));
	}
	put_lines(out, &l);
	strbuf_fini(&b);
}

/* --- after the passes --------------------------------------------------------------------------------- */

void stp_list_tree(struct strbuf *out, const struct stp_prog *prog, const char *name)
{
	strbuf_printf(out, "# parse tree dump\n# file %s\n", name);
	stp_dump(out, prog);
	strbuf_putc(out, '\n');
}

static void put_global(struct strbuf *b, const struct stp_var *v)
{
	strbuf_puts(b, v->name);
	if (v->arity > 0) {
		strbuf_putc(b, '[');
		for (int i = 0; i < v->arity; i++)
			strbuf_printf(b, "%s%s", i ? ", " : "", stp_type_text(v->index_types[i]));
		strbuf_putc(b, ']');
	}
	strbuf_printf(b, ":%s\n", stp_type_text(v->type));
}

void stp_list_checked(struct strbuf *out, const struct stp_prog *prog)
{
	bool any = false;

	for (const struct stp_var *v = prog->globals.first; v; v = v->next) {
		if (!v->reads && !v->writes)
			continue;
		strbuf_puts(out, any ? "" : "# globals\n");
		put_global(out, v);
		any = true;
	}
	any = false;
	for (const struct stp_func *f = prog->funcs; f; f = f->next) {
		if (!f->needed)
			continue;
		strbuf_puts(out, any ? "" : "# functions\n");
		put_function(out, f);
		strbuf_putc(out, '\n');
		any = true;
	}
	if (prog->handlers)
		strbuf_puts(out, "# probes\n");
	for (const struct stp_handler *h = prog->handlers; h; h = h->next) {
		stp_dump_point(out, h->point);
		strbuf_puts(out, " /* <- ");
		stp_dump_point(out, h->written);
		strbuf_puts(out, " */\n");
		any = false;
		for (const struct stp_var *v = h->locals.first; v; v = v->next) {
			strbuf_puts(out, any ? "" : "  # locals\n");
			strbuf_puts(out, "  ");
			put_global(out, v);
			any = true;
		}
	}
}
