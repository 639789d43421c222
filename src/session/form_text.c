/*
 * Records as text, in the wording of the program's dialect: the default form.
 */
#include "session/form.h"

#include <errno.h>

#include "out/agg.h"
#include "out/dialect.h"
#include "out/printf.h"
#include "out/sink.h"
#include "out/trace.h"

static void text_begin(const struct reading *r, const struct out_firing *f, const struct out_firing *next)
{
	out_line_begin(r->s->conf.out, &r->s->output.lines, f, next);
}

static void text_end(struct session *s)
{
	out_line_end(s->conf.out, &s->output.lines);
}

static int text_print(const struct reading *r, const struct ir_act *act)
{
	struct out_sink text;
	int e = reading_text(r, act, &text);

	out_puts(r->s->conf.out, out_text(&text));
	out_close(&text);
	return e;
}

static int text_printf(const struct reading *r, const struct ir_act *act)
{
	return out_printf(r->s->conf.out, act->fmt, reading_values(r, act), reading_slots(r, act), act->nfields);
}

static int text_trace(const struct reading *r, const struct ir_act *act)
{
	unsigned char bytes[READING_BYTES];
	size_t n = act->nfields > 1 ? reading_bytes(r, act, bytes) : 0;

	if (n && !out_is_text(bytes, n)) {
		out_bytes(r->s->conf.out, bytes, n);
		return 0;
	}
	out_trace(r->s->conf.out, reading_values(r, act), &r->rec->fields[act->field], &r->s->output.lines);
	return 0;
}

static int text_tracemem(const struct reading *r, const struct ir_act *act)
{
	unsigned char bytes[READING_BYTES];
	size_t n = reading_bytes(r, act, bytes);

	out_bytes(r->s->conf.out, bytes, n);
	return 0;
}

static int text_stack(const struct reading *r, const struct ir_act *act)
{
	out_key(r->s->conf.out, reading_values(r, act), &r->rec->fields[act->field]);
	return 0;
}

static int put_aggs(struct session *s, const struct fmt *fmt, const struct out_agg *aggs, size_t n,
		    const struct out_agg_order *order)
{
	return out_printa(s->conf.out, fmt, aggs, n, order);
}

static int text_printa(const struct reading *r, const struct ir_act *act)
{
	return reading_aggs(r, act, put_aggs);
}

static int text_hist(const struct reading *r, const struct ir_act *act)
{
	struct out_sink *out = r->s->conf.out;
	const uint64_t *words;
	int e = ir_rec_stat(r->rec, r->record->hdr, r->record->size, &words);

	if (!e)
		e = out_dialect(out)->hist ? out_dialect(out)->hist(out, r->rec->stat, words) : -EINVAL;
	if (!e && reading_values(r, act)->i)
		out_putc(out, '\n');
	return e;
}

static int text_last_agg(struct session *s, const struct out_agg *agg, const struct out_agg_order *order)
{
	return out_agg(s->conf.out, agg, order);
}

const struct form form_text = {
	.begin = text_begin,
	.end = text_end,
	.act = {
		[IR_ACT_PRINTF] = text_printf,
		[IR_ACT_PRINT] = text_print,
		[IR_ACT_TRACE] = text_trace,
		[IR_ACT_TRACEMEM] = text_tracemem,
		[IR_ACT_STACK] = text_stack,
		[IR_ACT_PRINTA] = text_printa,
		[IR_ACT_HIST] = text_hist,
	},
	.last_agg = text_last_agg,
	.stands_apart = true,
	.drops = session_lost,
};
