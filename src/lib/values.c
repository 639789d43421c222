/*
 * Records and aggregations for the library's callers: typed values instead of text.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "abi/record.h"
#include "abi/stat.h"
#include "base/grow.h"
#include "ir/ir.h"
#include "ir/layout.h"
#include "lib/lib.h"
#include "out/agg.h"
#include "out/field.h"
#include "out/hist.h"
#include "out/names.h"
#include "probe/probe.h"

/* The values of one record, or of one row, and all memory that they point to: released together. */
struct lib_values {
	struct session_taker taker;
	struct dtap_record record;
	struct dtap_action *actions;
	size_t actions_cap;
	struct dtap_value *values;	/* of all actions, consecutive */
	size_t nvalues, values_cap;
	void **owned;			/* texts, and arrays of frames */
	size_t nowned, owned_cap;
	bool failed;			/* out of memory: the record is dropped */
	bool is_reading;		/* the record is of a probe of PROBE_READ */
	struct globals *globals;	/* NULL: nobody asks for them */
};

/* Globals of a SystemTap script that are being read: sem_readings() tells what their records are. */
struct globals {
	struct lib_values v;
	char *name, *kind;		/* in v.owned */
	struct dtap_bucket *buckets;
	size_t nbuckets, buckets_cap;
	const char *asked;		/* of this name alone, or NULL */
	int (*row)(void *ctx, const struct dtap_row *r);
	void *ctx;
	bool found;
	int result;			/* what @row has returned, or a negative errno: no more rows */
};

static void forget(struct lib_values *v)
{
	for (size_t i = 0; i < v->nowned; i++)
		free(v->owned[i]);
	v->nowned = v->nvalues = v->record.nactions = 0;
	v->failed = false;
}

void lib_values_free(struct lib_values *v)
{
	if (!v)
		return;
	if (v->globals) {
		forget(&v->globals->v);
		free(v->globals->v.owned);
		free(v->globals->v.values);
		free(v->globals->buckets);
		free(v->globals);
	}
	forget(v);
	free(v->owned);
	free(v->values);
	free(v->actions);
	free(v);
}

/* Take ownership of @p, which is released with the record.  Returns @p; NULL if @p is NULL or memory is short. */
static void *own(struct lib_values *v, void *p)
{
	if (!p || !grow_array(&v->owned, &v->owned_cap, v->nowned, sizeof(*v->owned))) {
		free(p);
		v->failed = true;
		return NULL;
	}
	return v->owned[v->nowned++] = p;
}

static const char *own_text(struct lib_values *v, const char *text)
{
	const char *copy = own(v, strdup(text));

	return copy ? copy : "";
}

/* --- one value ----------------------------------------------------------------------------------------- */

static struct dtap_value stack_value(struct lib_values *v, const struct names *names, uint64_t number)
{
	struct dtap_value ret = { .type = DTAP_STACK };
	struct out_sink text;
	const char **frames;
	char *lines, *rest;
	size_t n = 1;

	out_open_mem(&text);
	if (names)
		names_put_stack(names, &text, number, 0);
	lines = own(v, strdup(out_text(&text)));
	out_close(&text);
	for (const char *s = lines; s && *s; s++)
		n += *s == '\n';
	frames = lines ? own(v, malloc(n * sizeof(*frames))) : NULL;
	if (!frames)
		return ret;
	ret.stack.frames = frames;
	for (char *line = strtok_r(lines, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest))
		frames[ret.stack.n++] = line;
	return ret;
}

static struct dtap_value value_of(struct lib_values *v, const struct names *names, const struct ir_value *i,
				  const struct ir_slot *slot)
{
	char text[512];

	if (i->type == IR_STR)
		return (struct dtap_value){ .type = DTAP_STRING, .s = own_text(v, i->s) };
	if (slot->show == IR_SHOW_FLOAT)
		return (struct dtap_value){ .type = DTAP_FLOAT, .f = out_float((uint64_t)i->i, slot->width) };
	if (slot->show == IR_SHOW_STACK)
		return stack_value(v, names, (uint64_t)i->i);
	if (slot->show && names)
		return (struct dtap_value){ .type = DTAP_STRING,
					    .s = own_text(v, names_text(names, slot->show, (uint64_t)i->i, text, sizeof(text))) };
	if (slot->sign)
		return (struct dtap_value){ .type = DTAP_INT, .i = i->i };
	return (struct dtap_value){ .type = DTAP_UINT, .u = (uint64_t)i->i };
}

/* --- globals ------------------------------------------------------------------------------------------- */

/* The values of a statistic in bucket @i and above; see abi/stat.h. */
static int64_t bucket_from(const struct ir_map *m, uint32_t i)
{
	unsigned int n;

	if (m->stat == IR_STAT_LINEAR)
		return i ? (int64_t)((uint64_t)m->linear[0] + (uint64_t)(i - 1) * (uint64_t)m->linear[2]) : INT64_MIN;
	if (i >= ABI_STAT_LOG_ZERO)
		return i == ABI_STAT_LOG_ZERO ? 0 : (int64_t)(UINT64_C(1) << (i - ABI_STAT_LOG_ZERO - 1));
	n = ABI_STAT_LOG_ZERO - i;
	return n == ABI_STAT_LOG_ZERO ? INT64_MIN : -(int64_t)((UINT64_C(1) << n) - 1);
}

/* The buckets that have values, those between them, and one more on each side, but none below 0 for that. */
static int take_buckets(struct globals *g, const struct ir_map *m, const uint64_t *counts)
{
	uint32_t n = ir_stat_words(m) - ABI_STAT_BUCKETS, first = 0, last = n;

	while (first < n && !counts[first])
		first++;
	while (last > first && !counts[last - 1])
		last--;
	g->nbuckets = 0;
	if (first && first < n && bucket_from(m, first) > 0)
		first--;
	for (uint32_t i = first; i <= last && i < n; i++) {
		if (!grow_array(&g->buckets, &g->buckets_cap, g->nbuckets, sizeof(*g->buckets)))
			return -ENOMEM;
		g->buckets[g->nbuckets++] = (struct dtap_bucket){ bucket_from(m, i), (int64_t)counts[i] };
	}
	return 0;
}

/* Give the global that was read to who asks; @buckets: its histogram is complete. */
static void give_global(struct globals *g, const char *function, bool buckets)
{
	bool is_stat = !strcmp(g->kind, "stat") || !strcmp(g->kind, "hist");
	size_t fixed = is_stat ? 2 : 1;
	struct dtap_row row = { .aggregation = g->name, .function = function, .keys = g->v.values };
	const struct dtap_value *last;

	if (g->result || g->v.nvalues < fixed || (g->asked && strcmp(g->asked, g->name)))
		return;
	last = &g->v.values[g->v.nvalues - 1];
	row.nkeys = g->v.nvalues - fixed;
	row.value = *last;
	if (is_stat) {
		row.count = last[-1].u;
		row.sum = last->i;
	}
	if (buckets) {
		row.buckets = g->buckets;
		row.nbuckets = g->nbuckets;
	}
	g->found = true;
	g->result = g->row(g->ctx, &row);
	if (g->result == DTAP_FORGET)
		g->result = 0;
}

/* "NAME KIND" and more, with the values behind. */
static void begin_global(struct globals *g, const char *text)
{
	char *rest = own(&g->v, strdup(text));

	g->name = rest ? strtok_r(rest, " ", &rest) : NULL;
	g->kind = g->name ? strtok_r(NULL, " ", &rest) : NULL;
	if (g->v.failed || !g->kind)
		g->result = g->result ? g->result : -ENOMEM;
	else if (strcmp(g->kind, "hist"))
		give_global(g, g->kind, false);
}

static void take_hist(void *ctx, const struct ir_map *m, const uint64_t *words)
{
	struct dtap *t = ctx;
	struct globals *g = t->values->globals;
	int e;

	if (!t->values->is_reading || !g->row || g->result || !g->kind || strcmp(g->kind, "hist"))
		return;
	e = take_buckets(g, m, words + ABI_STAT_BUCKETS);
	if (e)
		g->result = e;
	else
		give_global(g, m->stat == IR_STAT_LOG ? "hist_log" : "hist_linear", true);
	g->kind = NULL;
}

/* --- records ------------------------------------------------------------------------------------------- */

static void begin(void *ctx, const struct abi_record *hdr, const struct probe *p)
{
	struct dtap *t = ctx;

	forget(t->values);
	t->values->is_reading = p->kind == PROBE_READ;
	t->values->record = (struct dtap_record){
		.time_ns = hdr->time_ns, .pid = hdr->pid, .tid = hdr->tid, .cpu = hdr->cpu, .probe = p->id,
		.provider = p->prov, .module = p->mod, .function = p->func, .name = p->name,
	};
}

static void take_global(struct dtap *t, const char *text, const struct ir_value *v, const struct ir_slot *slots, size_t n)
{
	struct globals *g = t->values->globals;

	forget(&g->v);
	for (size_t i = 0; i < n; i++) {
		if (!grow_array(&g->v.values, &g->v.values_cap, g->v.nvalues, sizeof(*g->v.values))) {
			g->result = -ENOMEM;
			return;
		}
		g->v.values[g->v.nvalues++] = value_of(&g->v, session_names(t->session), &v[i], &slots[i]);
	}
	begin_global(g, text);
}

static void action(void *ctx, const char *name, const char *text, const struct ir_value *v, const struct ir_slot *slots,
		   size_t n)
{
	struct dtap *t = ctx;
	struct lib_values *to = t->values;
	const struct names *names = session_names(t->session);

	if (to->is_reading) {
		if (to->globals && to->globals->row && text)
			take_global(t, text, v, slots, n);
		return;
	}
	if (!grow_array(&to->actions, &to->actions_cap, to->record.nactions, sizeof(*to->actions))) {
		to->failed = true;
		return;
	}
	for (size_t i = 0; i < n; i++) {
		if (!grow_array(&to->values, &to->values_cap, to->nvalues, sizeof(*to->values))) {
			to->failed = true;
			return;
		}
		to->values[to->nvalues++] = value_of(to, names, &v[i], &slots[i]);
	}
	to->actions[to->record.nactions++] = (struct dtap_action){
		.name = name, .text = text ? own_text(to, text) : NULL, .nvalues = n,
	};
}

static void end(void *ctx)
{
	struct dtap *t = ctx;
	struct lib_values *v = t->values;
	size_t at = 0;

	if (v->is_reading || !t->conf.record)
		return;
	for (size_t i = 0; i < v->record.nactions; at += v->actions[i++].nvalues)
		v->actions[i].values = v->values ? v->values + at : NULL;
	v->record.actions = v->actions;
	if (v->failed)
		lib_error(t, "out of memory: a record is lost");
	else
		t->conf.record(t->conf.ctx, &v->record);
	forget(v);
}

int lib_values_new(struct dtap *t, struct session_conf *conf)
{
	t->values = calloc(1, sizeof(*t->values));
	if (!t->values) {
		lib_error(t, "out of memory");
		return -ENOMEM;
	}
	t->values->globals = t->read_globals ? calloc(1, sizeof(*t->values->globals)) : NULL;
	if (t->read_globals && !t->values->globals) {
		lib_error(t, "out of memory");
		return -ENOMEM;
	}
	t->values->taker = (struct session_taker){ .begin = begin, .action = action, .hist = take_hist, .end = end, .ctx = t };
	conf->taker = &t->values->taker;
	return 0;
}

/* --- aggregations -------------------------------------------------------------------------------------- */

struct rows {
	struct dtap *t;
	struct lib_values v;
	struct dtap_bucket *buckets;
	size_t buckets_cap;
	int (*row)(void *ctx, const struct dtap_row *r);
	void *ctx;
};

static int add_buckets(struct rows *r, const struct out_agg *a, const uint64_t *words, struct dtap_row *row)
{
	uint32_t i, to;

	out_hist_range(a->agg, words, &i, &to);
	for (; i <= to; i++) {
		if (!grow_array(&r->buckets, &r->buckets_cap, row->nbuckets, sizeof(*r->buckets)))
			return -ENOMEM;
		r->buckets[row->nbuckets++] = (struct dtap_bucket){
			.from = out_hist_from(a->agg, i), .count = out_normalize(out_hist_count(words, i), a->normal),
		};
	}
	row->buckets = r->buckets;
	return 0;
}

static int give_row(void *ctx, const struct out_agg_line *line)
{
	static const char *const functions[IR_A_NR] = {
#define IR_AGG(NAME, text, ...) [IR_A_##NAME] = text,
#include "ir/aggs.def"
#undef IR_AGG
	};
	struct rows *r = ctx;
	const struct out_agg *a = line->agg;
	struct dtap_row row = { .aggregation = a->agg->name, .function = functions[a->agg->fn], .nkeys = a->agg->nkeys };
	const struct names *names = session_names(r->t->session);
	struct dtap_value keys[IR_MAX_KEYS];
	bool sign;
	int e = 0;

	forget(&r->v);
	for (size_t i = 0; i < row.nkeys; i++)
		keys[i] = value_of(&r->v, names, &line->keys[i], &line->slots[i]);
	row.keys = keys;
	if (out_is_hist(a->agg)) {
		e = add_buckets(r, a, line->words, &row);
	} else {
		row.value.i = out_agg_value(a->agg, line->words, a->normal, &sign);
		row.value.type = sign ? DTAP_INT : DTAP_UINT;
	}
	if (a->agg->fn == IR_A_AVG || a->agg->fn == IR_A_STDDEV) {
		row.count = line->words[0];
		row.sum = (int64_t)line->words[1];
	}
	if (e || r->v.failed)
		return -ENOMEM;
	e = r->row(r->ctx, &row);
	return e == DTAP_FORGET ? SESSION_FORGET : e;
}

static int read_globals(struct dtap *t, const char *name, int (*row)(void *ctx, const struct dtap_row *r), void *ctx)
{
	struct globals *g = t->values->globals;
	int e;

	g->asked = name;
	g->row = row;
	g->ctx = ctx;
	g->found = !name;
	g->result = 0;
	g->kind = NULL;
	e = session_read(t->session);
	g->row = NULL;
	forget(&g->v);
	if (e || g->result)
		return e ? e : g->result;
	return g->found ? 0 : -ENOENT;
}

int dtap_aggregations(struct dtap *t, const char *name, int (*row)(void *ctx, const struct dtap_row *r), void *ctx)
{
	struct rows r = { .t = t, .row = row, .ctx = ctx };
	int e;

	if (t->step < LIB_STARTED)
		return -EINVAL;
	if (t->read_globals)
		return read_globals(t, name, row, ctx);
	e = session_each_row(t->session, name, give_row, &r);
	forget(&r.v);
	free(r.v.owned);
	free(r.buckets);
	return e;
}
