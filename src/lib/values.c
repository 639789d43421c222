/*
 * Records and aggregations for the library's callers: typed values instead of text.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "abi/record.h"
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

/* --- records ------------------------------------------------------------------------------------------- */

static void begin(void *ctx, const struct abi_record *hdr, const struct probe *p)
{
	struct dtap *t = ctx;

	forget(t->values);
	t->values->record = (struct dtap_record){
		.time_ns = hdr->time_ns, .pid = hdr->pid, .tid = hdr->tid, .cpu = hdr->cpu, .probe = p->id,
		.provider = p->prov, .module = p->mod, .function = p->func, .name = p->name,
	};
}

static void action(void *ctx, const char *name, const char *text, const struct ir_value *v, const struct ir_slot *slots,
		   size_t n)
{
	struct dtap *t = ctx;
	struct lib_values *to = t->values;
	const struct names *names = session_names(t->session);

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
	t->values->taker = (struct session_taker){ begin, action, end, t };
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
	return r->row(r->ctx, &row);
}

int dtap_aggregations(struct dtap *t, const char *name, int (*row)(void *ctx, const struct dtap_row *r), void *ctx)
{
	struct rows r = { .t = t, .row = row, .ctx = ctx };
	int e;

	if (t->step < LIB_STARTED)
		return -EINVAL;
	e = session_each_row(t->session, name, give_row, &r);
	forget(&r.v);
	free(r.v.owned);
	free(r.buckets);
	return e;
}
