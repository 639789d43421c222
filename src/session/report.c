/*
 * Printing of aggregations: snapshots (aggs.h) are passed to the printer (out/agg.h) by printa() and the end of the
 * session; and trunc().
 */
#include "session/form.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "out/agg.h"

static struct out_agg_order order_of(const struct options *o)
{
	return (struct out_agg_order){
		.by_key = o->v[OPT_aggsortkey],
		.reverse = o->v[OPT_aggsortrev],
		.key_pos = (unsigned int)o->v[OPT_aggsortkeypos],
		.pos = (unsigned int)o->v[OPT_aggsortpos],
		.first = o->v[OPT_aggfirst],
	};
}

/* A snapshot of @g in *out; its rows stay valid until the next one. */
static int snapshot(struct session *s, const struct ir_agg *g, struct out_agg *out)
{
	long n = aggs_read(s->aggs, g, &out->rows);

	if (n < 0)
		return (int)n;
	out->agg = g;
	out->n = (size_t)n;
	out->normal = aggs_normal(s->aggs, g);
	out->zoom = s->opts.v[OPT_aggzoom];
	return 0;
}

int reading_aggs(const struct reading *r, const struct ir_act *act, put_aggs_fn *put)
{
	struct session *s = r->s;
	struct out_agg_order order = order_of(s->conf.opts);
	struct out_agg *snaps = calloc(act->naggs, sizeof(*snaps));
	uint32_t i;
	int e = snaps ? 0 : -ENOMEM;

	for (i = 0; i < act->naggs && !e; i++) {
		e = snapshot(s, act->aggs[i], &snaps[i]);
		aggs_set_printed(s->aggs, act->aggs[i]);
	}
	if (!e)
		e = put(s, act->fmt, snaps, act->naggs, &order);
	free(snaps);
	return e;
}

int session_trunc_agg(struct session *s, const struct ir_agg *g, int64_t keep)
{
	struct out_agg snap;
	size_t *index;
	long n;
	int e = snapshot(s, g, &snap);

	if (e)
		return e;
	index = malloc((snap.n + 1) * sizeof(*index));
	n = index ? out_agg_trunc(&snap, keep, index) : -ENOMEM;
	e = n < 0 ? (int)n : aggs_trunc(s->aggs, g, index, (size_t)n);
	free(index);
	return e;
}

int session_print_aggs(struct session *s)
{
	const struct ir_prog *prog = s->conf.prog;
	struct out_agg_order order = order_of(s->conf.opts);
	struct out_agg snap;
	uint32_t i;
	int e = 0;

	for (i = 0; i < prog->naggs && !e && (!s->output.form->last_aggs_asked || s->conf.print_aggs); i++) {
		/* The aggregations themselves are in the order of their rows. */
		const struct ir_agg *g = prog->aggs[order.reverse ? prog->naggs - 1 - i : i];

		if (aggs_printed(s->aggs, g))
			continue;
		e = snapshot(s, g, &snap);
		if (!e && snap.n)
			e = s->output.form->last_agg(s, &snap, &order);
	}
	return e;
}

struct each_row {
	int (*each)(void *ctx, const struct out_agg_line *line);
	void *ctx;
	const struct ir_value **over;	/* keys of rows that are to be removed */
	size_t n, cap;
};

static int see_row(void *ctx, const struct out_agg_line *line)
{
	struct each_row *r = ctx;
	int e = r->each(r->ctx, line);

	if (e != SESSION_FORGET)
		return e;
	if (grow_array(&r->over, &r->cap, r->n, sizeof(*r->over)))
		r->over[r->n++] = line->keys;
	return 0;
}

int session_each_row(struct session *s, const char *name, int (*each)(void *ctx, const struct out_agg_line *line),
		     void *ctx)
{
	const struct ir_prog *prog = s->conf.prog;
	struct out_agg_order order = order_of(s->conf.opts);
	struct each_row r = { each, ctx, NULL, 0, 0 };
	bool found = !name;
	struct out_agg snap;
	int e = session_drain(s, false);

	aggs_stale(s->aggs);
	for (uint32_t i = 0; i < prog->naggs && !e; i++) {
		if (name && strcmp(prog->aggs[i]->name, name))
			continue;
		found = true;
		e = snapshot(s, prog->aggs[i], &snap);
		if (!e)
			e = out_agg_each(&snap, &order, see_row, &r);
		aggs_forget(s->aggs, prog->aggs[i], r.over, r.n);
		r.n = 0;
	}
	free(r.over);
	return e || found ? e : -ENOENT;
}

const struct names *session_names(const struct session *s)
{
	return s->known.names;
}
