/*
 * Records as typed values, passed to the session's owner (conf.taker); losses and aggregations at the end are text.
 */
#include "session/form.h"

#include "out/sink.h"

static const char *const names[IR_ACT_MAX] = {
#define IR_ACT(NAME, text, ...) [IR_ACT_##NAME] = text,
#include "ir/actions.def"
#undef IR_ACT
};

static void values_begin(const struct reading *r, const struct out_firing *f, const struct out_firing *next)
{
	const struct session_taker *taker = r->s->conf.taker;
	const struct abi_record *hdr = r->record->hdr;
	const struct enabled *en;
	const struct probe *fired;

	(void)f;
	(void)next;
	if (session_fired(r->s, hdr->probe, &en, &fired))
		taker->begin(taker->ctx, hdr, fired);
}

static void values_end(struct session *s)
{
	s->conf.taker->end(s->conf.taker->ctx);
}

static void give(const struct reading *r, const struct ir_act *act, const char *text)
{
	const struct session_taker *taker = r->s->conf.taker;

	taker->action(taker->ctx, names[act->kind], text, reading_values(r, act), reading_slots(r, act), act->nfields);
}

static int values_action(const struct reading *r, const struct ir_act *act)
{
	give(r, act, NULL);
	return 0;
}

static int values_hist(const struct reading *r, const struct ir_act *act)
{
	const struct session_taker *taker = r->s->conf.taker;
	const uint64_t *words;
	int e = ir_rec_stat(r->rec, r->record->hdr, r->record->size, &words);

	if (!e && taker->hist)
		taker->hist(taker->ctx, r->rec->stat, words);
	if (!e)
		give(r, act, NULL);
	return e;
}

/* Of an array of char the text alone: its bytes are for people. */
static int values_trace(const struct reading *r, const struct ir_act *act)
{
	struct ir_act first = *act;

	first.nfields = 1;
	give(r, &first, NULL);
	return 0;
}

static int values_printf(const struct reading *r, const struct ir_act *act)
{
	struct out_sink text;
	int e = reading_text(r, act, &text);

	give(r, act, out_text(&text));
	out_close(&text);
	return e;
}

static int values_last_agg(struct session *s, const struct out_agg *agg, const struct out_agg_order *order)
{
	return form_text.last_agg(s, agg, order);
}

const struct form form_values = {
	.begin = values_begin,
	.end = values_end,
	.act = {
		[IR_ACT_PRINTF] = values_printf,
		[IR_ACT_PRINT] = values_printf,
		[IR_ACT_TRACE] = values_trace,
		[IR_ACT_TRACEMEM] = values_action,
		[IR_ACT_STACK] = values_action,
		[IR_ACT_PRINTA] = values_action,
		[IR_ACT_HIST] = values_hist,
	},
	.last_agg = values_last_agg,
	.stands_apart = true,
	.drops = session_lost,
};
