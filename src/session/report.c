/*
 * Aggregations on their way out: snapshots (aggs.h) handed to the printer (out/agg.h), and what printa(),
 * trunc() and the end of the session do with them.
 */
#include "session/private.h"

#include <errno.h>
#include <stdlib.h>

#include "out/agg.h"

static struct out_agg_order order_of(const struct options *o)
{
	return (struct out_agg_order){
		.by_key = o->v[OPT_aggsortkey],
		.reverse = o->v[OPT_aggsortrev],
		.key_pos = (unsigned int)o->v[OPT_aggsortkeypos],
		.pos = (unsigned int)o->v[OPT_aggsortpos],
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

int session_print_agg(struct session *s, struct ir_agg *const *aggs, uint32_t n, const struct fmt *fmt)
{
	struct out_agg_order order = order_of(s->conf.opts);
	struct out_agg *snaps = calloc(n, sizeof(*snaps));
	uint32_t i;
	int e = snaps ? 0 : -ENOMEM;

	for (i = 0; i < n && !e; i++) {
		e = snapshot(s, aggs[i], &snaps[i]);
		aggs_set_printed(s->aggs, aggs[i]);
	}
	for (i = 0; i < n && !e && s->doc; i++)
		e = structured_agg(s, &snaps[i], &order);
	if (!e && !s->doc)
		e = out_printa(s->conf.out, fmt, snaps, n, &order);
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

	for (i = 0; i < prog->naggs && !e && (!s->doc || s->conf.print_aggs); i++) {
		if (aggs_printed(s->aggs, prog->aggs[i]))
			continue;
		e = snapshot(s, prog->aggs[i], &snap);
		if (!e && snap.n && s->doc)
			e = structured_last_agg(s, &snap, &order);
		else if (!e && snap.n)
			e = out_agg(s->conf.out, &snap, &order);
	}
	return e;
}
