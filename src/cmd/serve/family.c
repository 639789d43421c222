#include "cmd/serve/family.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/bytemap.h"
#include "base/grow.h"
#include "base/strbuf.h"
#include "cmd/ready/opts.h"
#include "cmd/serve/config.h"
#include "cmd/serve/fold.h"
#include "cmd/serve/labels.h"
#include "cmd/serve/tally.h"
#include "dtap.h"

#define OTHER "(other)"
#define PROCESS "process"	/* the label of a key that becomes the labels of that process */

/* What rows become, and how rows of equal labels become one. */
enum kind { KIND_SUM, KIND_MIN, KIND_MAX, KIND_SUMMARY, KIND_HISTOGRAM };

static const struct function {
	const char *name;
	enum kind kind;
	enum prom_type type;
	bool has_sum;			/* a histogram that keeps it */
} functions[] = {
	{ "count", KIND_SUM, PROM_COUNTER },		{ "sum", KIND_SUM, PROM_COUNTER },
	{ "min", KIND_MIN, PROM_GAUGE },		{ "max", KIND_MAX, PROM_GAUGE },
	{ "avg", KIND_SUMMARY, PROM_SUMMARY },		{ "stddev", KIND_SUMMARY, PROM_SUMMARY },
	{ "quantize", KIND_HISTOGRAM, PROM_HISTOGRAM }, { "lquantize", KIND_HISTOGRAM, PROM_HISTOGRAM },
	{ "llquantize", KIND_HISTOGRAM, PROM_HISTOGRAM },
	/* SystemTap's globals */
	{ "counter", KIND_SUM, PROM_COUNTER },		{ "gauge", KIND_SUM, PROM_GAUGE },
	{ "stat", KIND_SUMMARY, PROM_SUMMARY },
	{ "hist_log", KIND_HISTOGRAM, PROM_HISTOGRAM, .has_sum = true },
	{ "hist_linear", KIND_HISTOGRAM, PROM_HISTOGRAM, .has_sum = true },
};

struct series {
	char *labels;
	bool is_seen;			/* in this reading */
	bool is_signed;
	uint64_t value;			/* or the sum of a summary or histogram */
	uint64_t count;			/* of a summary */
	struct dtap_bucket *buckets;	/* sorted; those of a reading */
	size_t nbuckets, buckets_cap;
};

/* A row that has no series yet. */
struct newcomer {
	struct series s;
	struct newcomer *next;
};

struct family {
	char *aggregation;
	const struct function *function;
	char *name, *help;
	double scale;
	enum prom_type type;
	size_t nkeys;
	const char **labels;		/* of each key; NULL: it is left out */
	size_t process;			/* the key that is a process, shown or not; nkeys: none */
	struct tallies tallies;		/* of families with such a key */
	char *others;			/* the labels of the series for the rest */
	struct bytemap by_labels;
	struct series **series;		/* in the order of their coming */
	size_t n, cap, over;
	struct newcomer *newcomers;	/* of this reading, the last one first */
	struct bytemap newcomers_by_labels;
	int64_t *bounds;		/* where buckets begin, sorted: of all series, and they only become more */
	size_t nbounds, bounds_cap;
};

struct families {
	const struct serve_script *script;
	const struct serve_pairs *asked;
	struct folds *folds;
	families_process_fn *process;
	void *ctx;
	struct arena *arena;
	struct family **v;
	size_t n, cap;
};

static bool has_process(const struct family *m)
{
	return m->process < m->nkeys;
}

static void fini_series(struct series *s)
{
	free(s->labels);
	free(s->buckets);
}

static void drop_newcomers(struct family *m)
{
	for (struct newcomer *next, *p = m->newcomers; p; p = next) {
		next = p->next;
		fini_series(&p->s);
		free(p);
	}
	m->newcomers = NULL;
	bytemap_fini(&m->newcomers_by_labels);
	m->newcomers_by_labels = (struct bytemap){ 0 };
}

void families_free(struct families *f)
{
	if (!f)
		return;
	for (size_t i = 0; i < f->n; i++) {
		struct family *m = f->v[i];

		drop_newcomers(m);
		for (size_t k = 0; k < m->n; k++) {
			fini_series(m->series[k]);
			free(m->series[k]);
		}
		free(m->series);
		free(m->bounds);
		tallies_fini(&m->tallies);
		bytemap_fini(&m->by_labels);
	}
	arena_free(f->arena);
}

/* --- a new family -------------------------------------------------------------------------------------- */

/* The column of a ready-made command that is @key's, counted from 0, or the aggregation's. */
static const struct ready_column *column_of(const struct families *f, bool is_key, size_t key, const char *aggregation)
{
	const struct ready_head *h = f->script->command ? &f->script->command->head : NULL;

	for (size_t i = 0; h && i < h->ncolumns; i++) {
		const struct ready_column *c = &h->columns[i];

		if (is_key && c->is_key && !key--)
			return c;
		if (!is_key && c->of && !c->by && !strcmp(c->of, aggregation))
			return c;
	}
	return NULL;
}

static bool has(const struct serve_texts *t, const char *text)
{
	for (size_t i = 0; i < t->n; i++)
		if (!strcmp(t->v[i], text))
			return true;
	return false;
}

/* Is it the number of a process, not of a thread? */
static bool is_process(const struct ready_column *c)
{
	return c->kind == READY_PID && !strcmp(c->name, "pid");
}

/* The label of key @i, NULL: none.  Of a command's keys those that were named, or all but processes and threads. */
static const char *label_of(const struct families *f, const struct serve_metric *set, const struct ready_column *c, size_t i)
{
	if (c && set && set->has_labels)
		return has(&set->labels, c->name) ? c->name : is_process(c) && has(&set->labels, PROCESS) ? PROCESS : NULL;
	if (c)
		return c->kind == READY_PID ? NULL : c->name;
	if (set && set->has_labels)
		return i < set->labels.n && strcmp(set->labels.v[i], "-") ? set->labels.v[i] : NULL;
	return arena_printf(f->arena, "key%zu", i + 1);
}

/* The labels of @l, or @text in place of what is not known. */
static void put_process(const struct families *f, const struct labels *l, const char *text, struct strbuf *out)
{
	prom_label(out, "unit", l && l->unit ? l->unit : text);
	prom_label(out, "container", l && l->container ? l->container : text);
	prom_label(out, "interpreter", l && l->interpreter ? l->interpreter : text);
	for (size_t i = 0; i < f->asked->n; i++)
		prom_label(out, f->asked->v[i].name, l && i < l->nvalues && l->values[i] ? l->values[i] : text);
}

static void set_labels(struct families *f, struct family *m, const struct serve_metric *set)
{
	struct strbuf others = { 0 };

	m->labels = arena_alloc(f->arena, (m->nkeys + 1) * sizeof(*m->labels));
	m->process = m->nkeys;
	for (size_t i = 0; i < m->nkeys; i++) {
		const struct ready_column *c = column_of(f, true, i, NULL);

		m->labels[i] = label_of(f, set, c, i);
		if (c && is_process(c))
			m->process = i;
		if (m->labels[i] && !strcmp(m->labels[i], PROCESS)) {
			m->process = i;
			put_process(f, NULL, OTHER, &others);
		} else if (m->labels[i]) {
			prom_label(&others, m->labels[i], OTHER);
		}
	}
	m->others = arena_strdup(f->arena, strbuf_str(&others));
	strbuf_fini(&others);
}

/* A name of the configuration may have the "_total" that counters get. */
static char *without_total(struct arena *a, const char *name)
{
	size_t len = strlen(name);

	return len > 6 && !strcmp(name + len - 6, "_total") ? arena_strndup(a, name, len - 6) : arena_strdup(a, name);
}

static void set_name(struct families *f, struct family *m, const struct serve_metric *set, const struct ready_column *c)
{
	const char *what = c ? c->name : m->aggregation;
	bool is_time = c && c->kind == READY_TIME;

	m->scale = set && set->scale != 0 ? set->scale : is_time ? 1e-9 : 0;
	if (set && set->name)
		m->name = m->type == PROM_COUNTER ? without_total(f->arena, set->name) : arena_strdup(f->arena, set->name);
	else
		m->name = arena_printf(f->arena, "dtap_%s%s%s%s", f->script->name, *what ? "_" : "", what, is_time ? "_seconds" : "");
	if (set && set->help)
		m->help = arena_strdup(f->arena, set->help);
	else if (c)
		m->help = arena_printf(f->arena, "%s (dtap %s)", c->name, f->script->command->head.name);
	else
		m->help = arena_printf(f->arena, "%s%s of the script %s", f->script->language == DTAP_D ? "@" : "", m->aggregation,
				       f->script->name);
}

static struct family *new_family(struct families *f, const struct dtap_row *row, const struct function *function)
{
	const struct ready_column *c = column_of(f, false, 0, row->aggregation);
	const struct serve_metric *set = serve_metric(f->script, c ? c->name : row->aggregation);
	struct family *m = arena_new_of(f->arena, struct family);

	m->aggregation = arena_strdup(f->arena, row->aggregation);
	m->function = function;
	m->nkeys = row->nkeys;
	m->type = function->type;
	if (function->kind == KIND_SUM && set && set->type)
		m->type = set->type == SERVE_GAUGE ? PROM_GAUGE : PROM_COUNTER;
	set_name(f, m, set, c);
	set_labels(f, m, set);
	f->v = arena_grow(f->arena, f->v, &f->cap, f->n, sizeof(struct family *));
	return f->v[f->n++] = m;
}

/* The family of the row's aggregation; NULL: it is none that is shown. */
static struct family *family_of(struct families *f, const struct dtap_row *row)
{
	for (size_t i = 0; i < f->n; i++)
		if (!strcmp(f->v[i]->aggregation, row->aggregation))
			return f->v[i];
	if (f->script->command && !column_of(f, false, 0, row->aggregation))
		return NULL;	/* the command's own, no column */
	for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]); i++)
		if (!strcmp(functions[i].name, row->function))
			return new_family(f, row, &functions[i]);
	return NULL;
}

/* --- a reading ----------------------------------------------------------------------------------------- */

void families_begin(struct families *f)
{
	for (size_t i = 0; i < f->n; i++) {
		struct family *m = f->v[i];

		m->over = 0;
		tallies_begin(&m->tallies);
		for (size_t k = 0; k < m->n && !has_process(m); k++)
			m->series[k]->is_seen = false;
	}
}

/* @l: of the row's process, if it has one. */
static void put_labels(const struct families *f, const struct family *m, const struct dtap_row *row, const struct labels *l,
		       struct strbuf *out)
{
	struct strbuf value = { 0 };

	for (size_t i = 0; i < m->nkeys && i < row->nkeys; i++) {
		if (!m->labels[i])
			continue;
		strbuf_clear(&value);
		tally_text(&row->keys[i], &value);
		if (!strcmp(m->labels[i], PROCESS))
			put_process(f, l, "", out);
		else
			prom_label(out, m->labels[i], strbuf_str(&value));
	}
	strbuf_fini(&value);
}

static int add_bucket(struct series *s, struct dtap_bucket b)
{
	size_t at = 0;

	while (at < s->nbuckets && s->buckets[at].from < b.from)
		at++;
	if (at < s->nbuckets && s->buckets[at].from == b.from) {
		s->buckets[at].count += b.count;
		return 0;
	}
	if (!grow_array(&s->buckets, &s->buckets_cap, s->nbuckets, sizeof(*s->buckets)))
		return -ENOMEM;
	memmove(&s->buckets[at + 1], &s->buckets[at], (s->nbuckets++ - at) * sizeof(b));
	s->buckets[at] = b;
	return 0;
}

static int add_buckets(struct series *s, const struct dtap_bucket *v, size_t n)
{
	int e = 0;

	for (size_t i = 0; i < n && !e; i++)
		e = add_bucket(s, v[i]);
	return e;
}

static bool is_less(const struct series *s, uint64_t a, uint64_t b)
{
	return s->is_signed ? (int64_t)a < (int64_t)b : a < b;
}

/* Add @more, a series of this reading, to @s. */
static int merge(const struct family *m, struct series *s, const struct series *more)
{
	if (!s->is_seen) {
		s->value = s->count = s->nbuckets = 0;
		s->is_signed = more->is_signed;
	}
	switch (m->function->kind) {
	case KIND_MIN:
		s->value = s->is_seen && is_less(s, s->value, more->value) ? s->value : more->value;
		break;
	case KIND_MAX:
		s->value = s->is_seen && is_less(s, more->value, s->value) ? s->value : more->value;
		break;
	default:
		s->value += more->value;
		s->count += more->count;
	}
	s->is_seen = true;
	return add_buckets(s, more->buckets, more->nbuckets);
}

/* The row as a series without labels; its buckets are the row's. */
static struct series series_of(const struct family *m, const struct dtap_row *row)
{
	struct series s = { .is_seen = true, .is_signed = row->value.type == DTAP_INT, .value = row->value.u,
			    .buckets = (struct dtap_bucket *)row->buckets, .nbuckets = row->nbuckets };

	if (m->function->kind == KIND_SUMMARY || m->function->has_sum) {
		s.value = (uint64_t)row->sum;
		s.is_signed = true;
		s.count = row->count;
	}
	return s;
}

/* @more has no series: keep it until the end of the reading. */
static int add_newcomer(struct family *m, const char *labels, const struct series *more)
{
	struct newcomer *p = bytemap_get(&m->newcomers_by_labels, labels, strlen(labels) + 1);
	int e;

	if (p)
		return merge(m, &p->s, more);
	p = calloc(1, sizeof(*p));
	if (!p)
		return -ENOMEM;
	p->s.labels = strdup(labels);
	e = p->s.labels ? merge(m, &p->s, more) : -ENOMEM;
	if (!e)
		e = bytemap_set(&m->newcomers_by_labels, labels, strlen(labels) + 1, p);
	if (e) {
		fini_series(&p->s);
		free(p);
		return e;
	}
	p->next = m->newcomers;
	m->newcomers = p;
	return 0;
}

/* Where each bucket of a histogram begins. */
static int add_bounds(struct family *m, const struct dtap_row *row)
{
	for (size_t i = 0; i < row->nbuckets; i++) {
		int64_t from = row->buckets[i].from;
		size_t at = 0;

		while (at < m->nbounds && m->bounds[at] < from)
			at++;
		if (at < m->nbounds && m->bounds[at] == from)
			continue;
		if (!grow_array(&m->bounds, &m->bounds_cap, m->nbounds, sizeof(*m->bounds)))
			return -ENOMEM;
		memmove(&m->bounds[at + 1], &m->bounds[at], (m->nbounds++ - at) * sizeof(from));
		m->bounds[at] = from;
	}
	return 0;
}

static int add_series(struct families *f, struct family *m, const struct dtap_row *row, const struct labels *l, const struct series *more)
{
	struct strbuf labels = { 0 };
	struct series *s;
	int e;

	put_labels(f, m, row, l, &labels);
	s = bytemap_get(&m->by_labels, strbuf_str(&labels), labels.len + 1);
	e = s ? merge(m, s, more) : add_newcomer(m, strbuf_str(&labels), more);
	strbuf_fini(&labels);
	return e;
}

static const struct labels *process_of(const struct families *f, const struct family *m, const struct dtap_row *row)
{
	return f->process(f->ctx, (pid_t)row->keys[m->process].i);
}

/* The row has not grown: DTAP_FORGET if it cannot any more, since its process has ended, else 0; or -ENOMEM. */
static int end_row(struct families *f, struct family *m, const struct dtap_row *row)
{
	int e;

	if (f->script->language != DTAP_D || !kill((pid_t)row->keys[m->process].i, 0) || errno != ESRCH ||
	    !tallies_is_over(&m->tallies, row))
		return 0;
	e = folds_add(f->folds, row, m->process, process_of(f, m, row));
	if (e)
		return e;
	tallies_forget(&m->tallies, row);
	return DTAP_FORGET;
}

/* Of a process: what the row has grown by since the reading before; of extremes, what there is now. */
static int add_growth(struct families *f, struct family *m, const struct dtap_row *row)
{
	struct dtap_row growth;
	struct series more;
	int e = tallies_grow(&m->tallies, row, &growth);

	if (e < 0)
		return e;
	if (m->function->kind == KIND_MIN || m->function->kind == KIND_MAX)
		growth.value = row->value;
	more = series_of(m, &growth);
	e = e ? add_series(f, m, row, process_of(f, m, row), &more) : end_row(f, m, row);
	free(more.buckets);
	return e;
}

static bool has_stack(const struct dtap_row *row)
{
	for (size_t i = 0; i < row->nkeys; i++)
		if (row->keys[i].type == DTAP_STACK)
			return true;
	return false;
}

int families_add(struct families *f, const struct dtap_row *row)
{
	struct family *m = f->script->profiles && has_stack(row) ? NULL : family_of(f, row);
	struct series more;
	int e;

	if (!m)
		return 0;
	e = add_bounds(m, row);
	if (e)
		return e;
	if (has_process(m))
		return add_growth(f, m, row);
	more = series_of(m, row);
	return add_series(f, m, row, NULL, &more);
}

/* What processes that have ended had counted. */
static int add_fold(void *ctx, const struct dtap_row *row, const struct labels *l)
{
	struct families *f = ctx;
	struct family *m = family_of(f, row);
	struct series more;
	int e = m ? add_bounds(m, row) : 0;

	if (e || !m)
		return e;
	more = series_of(m, row);
	return add_series(f, m, row, l, &more);
}

struct families *families_new(const struct serve_script *script, const struct serve_pairs *asked, struct folds *folds,
			      families_process_fn *process, void *ctx)
{
	struct arena *a = arena_new();
	struct families *f = arena_new_of(a, struct families);

	*f = (struct families){ .script = script, .asked = asked, .folds = folds, .process = process, .ctx = ctx, .arena = a };
	families_begin(f);
	if (folds_each(folds, add_fold, f) || families_end(f))
		fprintf(stderr, "dtap serve: %s: out of memory: what processes that have ended had counted is not shown\n", script->name);
	return f;
}

/* Make @more a series.  It is emptied. */
static int admit(struct family *m, struct series *more)
{
	struct series *s = malloc(sizeof(*s));
	int e = s && grow_array(&m->series, &m->cap, m->n, sizeof(struct series *)) ? 0 : -ENOMEM;

	if (!e)
		e = bytemap_set(&m->by_labels, more->labels, strlen(more->labels) + 1, s);
	if (e) {
		free(s);
		return e;
	}
	*s = *more;
	*more = (struct series){ 0 };
	m->series[m->n++] = s;
	return 0;
}

/* Add @more to the series for the rest, which comes into being with the first. */
static int add_to_others(struct family *m, struct series *more)
{
	struct series *s = bytemap_get(&m->by_labels, m->others, strlen(m->others) + 1);

	m->over++;
	if (s)
		return merge(m, s, more);
	free(more->labels);
	more->labels = strdup(m->others);
	return more->labels ? admit(m, more) : -ENOMEM;
}

/* Rows come from the smallest value to the largest, and newcomers are in the reverse order. */
static int settle(struct families *f, struct family *m)
{
	int e = 0;

	for (struct newcomer *p = m->newcomers; p && !e; p = p->next)
		e = m->n < f->script->series ? admit(m, &p->s) : add_to_others(m, &p->s);
	drop_newcomers(m);
	return e;
}

int families_end(struct families *f)
{
	int e = 0;

	for (size_t i = 0; i < f->n; i++) {
		int one = settle(f, f->v[i]);

		e = one ? one : e;
	}
	return e;
}

/* --- the text ------------------------------------------------------------------------------------------ */

/* One "le": all values up to it. */
static void put_bucket(const struct family *m, const struct series *s, const char *bound, int64_t count, struct strbuf *out)
{
	struct strbuf labels = { 0 };

	strbuf_printf(&labels, "%s%sle=\"%s\"", s->labels, *s->labels ? "," : "", bound);
	prom_sample(out, m->name, "_bucket", strbuf_str(&labels));
	prom_value(out, (uint64_t)count, true, 0);
	strbuf_fini(&labels);
}

/* A sum that can become less is none to OpenMetrics: there may be no bound below 0. */
static bool shows_sum(const struct family *m)
{
	return m->function->has_sum && (m->nbounds < 2 || m->bounds[1] > 0);
}

/*
 * Buckets are cumulative, and the last one's bound is infinite.  A bucket ends before the next one begins; all series of
 * a family have the same bounds, so that they can be added up.
 */
static void put_histogram(const struct family *m, const struct series *s, enum prom_format format, struct strbuf *out)
{
	struct strbuf bound = { 0 };
	int64_t count = 0;
	size_t k = 0;

	for (size_t i = 0; i + 1 < m->nbounds; i++) {
		double last = (double)(m->bounds[i + 1] - 1);

		for (; k < s->nbuckets && s->buckets[k].from <= m->bounds[i]; k++)
			count += s->buckets[k].count;
		strbuf_clear(&bound);
		prom_bound(&bound, m->scale != 0 ? last * m->scale : last);
		put_bucket(m, s, strbuf_str(&bound), count, out);
	}
	for (; k < s->nbuckets; k++)
		count += s->buckets[k].count;
	put_bucket(m, s, "+Inf", count, out);
	if (format == PROM_TEXT || shows_sum(m)) {
		prom_sample(out, m->name, "_count", s->labels);
		prom_value(out, (uint64_t)count, true, 0);
	}
	if (shows_sum(m)) {
		prom_sample(out, m->name, "_sum", s->labels);
		prom_value(out, s->value, true, m->scale);
	}
	strbuf_fini(&bound);
}

static void put_series(const struct family *m, const struct series *s, enum prom_format format, struct strbuf *out)
{
	if (m->function->kind == KIND_HISTOGRAM) {
		put_histogram(m, s, format, out);
		return;
	}
	if (m->function->kind == KIND_SUMMARY) {
		prom_sample(out, m->name, "_count", s->labels);
		prom_value(out, s->count, false, 0);
	}
	prom_sample(out, m->name, m->function->kind == KIND_SUMMARY ? "_sum" : m->type == PROM_COUNTER ? "_total" : "", s->labels);
	prom_value(out, s->value, s->is_signed, m->scale);
}

void families_write(const struct families *f, enum prom_format format, struct strbuf *out)
{
	for (size_t i = 0; i < f->n; i++) {
		const struct family *m = f->v[i];

		prom_head(out, format, m->name, m->type, m->help);
		for (size_t k = 0; k < m->n; k++)
			if (m->series[k]->is_seen)
				put_series(m, m->series[k], format, out);
	}
}

size_t families_count(const struct families *f)
{
	return f->n;
}

const char *families_name(const struct families *f, size_t i, size_t *series, size_t *over)
{
	*series = f->v[i]->n;
	*over = f->v[i]->over;
	return f->v[i]->name;
}
