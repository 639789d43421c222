/*
 * Records as a document (-x oformat): one list of probes; each has the output of its clause's actions.
 *
 * Source: FreeBSD dtrace(1), "STRUCTURED OUTPUT".  It does not specify this: printa() outputs an object for each
 * aggregation, regardless of the format; a stack that is a key is an object with its frames; frames without a
 * function only have their symbol; and the aggregations at the end (-O) belong to a probe "AGGREGATION".
 */
#include "session/form.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/now.h"
#include "out/agg.h"
#include "out/doc.h"
#include "out/error.h"
#include "out/field.h"
#include "out/hist.h"
#include "out/names.h"
#include "out/printf.h"
#include "out/sink.h"

static int open_document(struct session *s)
{
	s->output.doc = malloc(sizeof(*s->output.doc));
	if (!s->output.doc)
		return -ENOMEM;
	doc_begin(s->output.doc, s->conf.out, !strcmp(s->opts.text[OPT_oformat], "xml"));
	doc_object(s->output.doc, "dtrace");
	doc_list(s->output.doc, "probes");
	return 0;
}

static void close_document(struct session *s)
{
	doc_end(s->output.doc);
}

static void open_probe(struct out_doc *d, int64_t cpu, int64_t id, const char *const names[4])
{
	doc_item(d);
	doc_unsigned(d, "timestamp", now_wall_ns());
	doc_signed(d, "cpu", cpu);
	doc_signed(d, "id", id);
	doc_text(d, "provider", names[0]);
	doc_text(d, "module", names[1]);
	doc_text(d, "function", names[2]);
	doc_text(d, "name", names[3]);
}

static void document_begin(const struct reading *r, const struct out_firing *f, const struct out_firing *next)
{
	struct out_doc *d = r->s->output.doc;
	const struct probe *p = NULL;
	const struct enabled *en;

	(void)next;
	if (session_fired(r->s, r->record->hdr->probe, &en, &p))
		open_probe(d, f->cpu, p->id, (const char *const[]){ p->prov, p->mod, p->func, p->name });
	doc_list(d, "output");
}

static void document_end(struct session *s)
{
	doc_close(s->output.doc);
	doc_close(s->output.doc);
}

/* --- values ------------------------------------------------------------------------------------------- */

/* Output the parts of "module`name+0x12", if it has that form. */
static void put_symbol_parts(struct out_doc *d, const char *symbol, const char *module)
{
	const char *tick = strchr(symbol, '`'), *plus = tick ? strrchr(tick, '+') : NULL;
	char part[512];

	if (!tick)
		return;
	snprintf(part, sizeof(part), "%.*s", (int)(tick - symbol), symbol);
	doc_text(d, module, part);
	snprintf(part, sizeof(part), "%.*s", plus ? (int)(plus - tick - 1) : (int)strlen(tick + 1), tick + 1);
	doc_text(d, "name", part);
	if (plus)
		doc_text(d, "offset", plus + 1);
}

static void put_frames(struct session *s, uint64_t number, const char *name)
{
	struct out_sink text;
	char *lines, *line, *rest;

	out_open_mem(&text);
	if (s->known.names)
		names_put_stack(s->known.names, &text, number, 0);
	doc_list(s->output.doc, name);
	lines = strdup(out_text(&text));
	for (line = lines ? strtok_r(lines, "\n", &rest) : NULL; line; line = strtok_r(NULL, "\n", &rest)) {
		doc_item(s->output.doc);
		doc_text(s->output.doc, "symbol", line);
		put_symbol_parts(s->output.doc, line, "module");
		doc_close(s->output.doc);
	}
	doc_close(s->output.doc);
	free(lines);
	out_close(&text);
}

/* Without a @name it is an element of a list, and needs its own object. */
static void put_stack(struct session *s, const char *name, uint64_t number)
{
	if (!name)
		doc_item(s->output.doc);
	put_frames(s, number, "ustack-frames");
	if (!name)
		doc_close(s->output.doc);
}

/* A value, as trace() outputs it. */
static void put_value(struct session *s, const char *name, const struct ir_value *v, const struct ir_slot *slot)
{
	char text[512];

	if (v->type == IR_STR)
		doc_text(s->output.doc, name, v->s);
	else if (slot->show == IR_SHOW_FLOAT)
		doc_float(s->output.doc, name, out_float((uint64_t)v->i, slot->width));
	else if (slot->show == IR_SHOW_STACK && s->known.names)
		put_stack(s, name, (uint64_t)v->i);
	else if (slot->show && s->known.names)
		doc_text(s->output.doc, name, names_text(s->known.names, slot->show, (uint64_t)v->i, text, sizeof(text)));
	else if (slot->sign)
		doc_signed(s->output.doc, name, v->i);
	else
		doc_unsigned(s->output.doc, name, (uint64_t)v->i);
}

/* An object for each of @n values. */
static void put_values(const struct reading *r, const struct ir_act *act, size_t n)
{
	const struct ir_value *v = reading_values(r, act);
	const struct ir_slot *slots = reading_slots(r, act);

	for (size_t i = 0; i < n; i++) {
		doc_item(r->s->output.doc);
		put_value(r->s, "value", &v[i], &slots[i]);
		doc_close(r->s->output.doc);
	}
}

static void put_text(struct session *s, const char *name, const char *text)
{
	doc_item(s->output.doc);
	doc_text(s->output.doc, name, text);
	doc_close(s->output.doc);
}

/* The text, then the arguments as for trace(). */
static int document_printf(const struct reading *r, const struct ir_act *act)
{
	struct out_sink text;
	int e = reading_text(r, act, &text);

	put_text(r->s, "message", out_text(&text));
	put_values(r, act, act->nfields);
	out_close(&text);
	return e;
}

static int document_trace(const struct reading *r, const struct ir_act *act)
{
	put_values(r, act, 1);
	return 0;
}

static int document_tracemem(const struct reading *r, const struct ir_act *act)
{
	unsigned char bytes[READING_BYTES];
	char hex[2 * sizeof(bytes) + 1] = "";
	size_t n = reading_bytes(r, act, bytes);

	for (size_t i = 0; i < n; i++)
		snprintf(hex + 2 * i, 3, "%02x", bytes[i]);
	put_text(r->s, "tracemem", hex);
	return 0;
}

static int document_stack(const struct reading *r, const struct ir_act *act)
{
	static const char *const names[] = { [IR_SHOW_ADDR] = "uaddr", [IR_SHOW_SYM] = "usym", [IR_SHOW_MOD] = "umod" };
	uint64_t number = (uint64_t)reading_values(r, act)->i;
	enum ir_show show = reading_slots(r, act)->show;
	struct session *s = r->s;
	char text[512];

	doc_item(s->output.doc);
	if (show == IR_SHOW_STACK) {
		put_frames(s, number, "ustack-frames");
	} else if (s->known.names && show < sizeof(names) / sizeof(names[0])) {
		names_text(s->known.names, show, number, text, sizeof(text));
		doc_text(s->output.doc, names[show], text);
		put_symbol_parts(s->output.doc, text, "object");
	}
	doc_close(s->output.doc);
	return 0;
}

/* --- aggregations ------------------------------------------------------------------------------------- */

static const char *const functions[IR_A_NR] = {
#define IR_AGG(NAME, text, ...) [IR_A_##NAME] = text,
#include "ir/aggs.def"
#undef IR_AGG
};

static void put_buckets(struct out_doc *d, const struct out_agg *a, const uint64_t *words)
{
	uint32_t i, to;

	out_hist_range(a->agg, words, &i, &to);
	doc_list(d, "buckets");
	for (; i <= to; i++) {
		doc_item(d);
		doc_signed(d, "value", out_hist_bound(a->agg, i));
		doc_signed(d, "count", out_normalize(out_hist_count(words, i), a->normal));
		doc_close(d);
	}
	doc_close(d);
}

static int put_line(void *ctx, const struct out_agg_line *line)
{
	const struct out_agg *a = line->agg;
	struct session *s = ctx;
	int64_t v;
	bool sign;

	doc_item(s->output.doc);
	doc_list(s->output.doc, "keys");
	for (uint32_t i = 0; i < a->agg->nkeys; i++)
		put_value(s, NULL, &line->keys[i], &line->slots[i]);
	doc_close(s->output.doc);
	if (out_is_hist(a->agg)) {
		put_buckets(s->output.doc, a, line->words);
	} else {
		v = out_agg_value(a->agg, line->words, a->normal, &sign);
		if (sign)
			doc_signed(s->output.doc, functions[a->agg->fn], v);
		else
			doc_unsigned(s->output.doc, functions[a->agg->fn], (uint64_t)v);
	}
	doc_close(s->output.doc);
	return 0;
}

static int put_agg(struct session *s, const struct out_agg *a, const struct out_agg_order *order)
{
	int e;

	doc_item(s->output.doc);
	doc_list(s->output.doc, "aggregation-data");
	e = out_agg_each(a, order, put_line, s);
	doc_close(s->output.doc);
	doc_text(s->output.doc, "aggregation-name", a->agg->name);
	doc_close(s->output.doc);
	return e;
}

static int put_aggs(struct session *s, const struct fmt *fmt, const struct out_agg *aggs, size_t n,
		    const struct out_agg_order *order)
{
	int e = 0;

	(void)fmt;
	for (size_t i = 0; i < n && !e; i++)
		e = put_agg(s, &aggs[i], order);
	return e;
}

static int document_printa(const struct reading *r, const struct ir_act *act)
{
	return reading_aggs(r, act, put_aggs);
}

/* Only SystemTap has this action, and it has no documents. */
static int document_hist(const struct reading *r, const struct ir_act *act)
{
	return form_text.act[IR_ACT_HIST](r, act);
}

static int document_last_agg(struct session *s, const struct out_agg *a, const struct out_agg_order *order)
{
	static const char *const names[] = { "dtrace", "INTERNAL", "INTERNAL", "AGGREGATION" };
	int e;

	open_probe(s->output.doc, -1, -1, names);
	doc_list(s->output.doc, "output");
	e = put_agg(s, a, order);
	document_end(s);
	return e;
}

/* --- losses ------------------------------------------------------------------------------------------- */

static void document_drops(struct session *s, unsigned int kind, uint64_t n)
{
	static const char *const names[] = { "dtrace", "INTERNAL", "INTERNAL", "DROP" };
	struct out_sink text;

	s->output.told[kind] += n;
	out_open_mem(&text);
	out_drop_words(&text, kind, n);
	out_putc(&text, '\n');
	open_probe(s->output.doc, -1, -1, names);
	doc_unsigned(s->output.doc, "count", n);
	doc_unsigned(s->output.doc, "total", s->output.told[kind]);
	doc_signed(s->output.doc, "kind", out_drop_number(kind));
	doc_text(s->output.doc, "msg", out_text(&text));
	doc_close(s->output.doc);
	out_close(&text);
}

const struct form form_document = {
	.open = open_document,
	.close = close_document,
	.begin = document_begin,
	.end = document_end,
	.act = {
		[IR_ACT_PRINTF] = document_printf,
		[IR_ACT_PRINT] = document_printf,
		[IR_ACT_TRACE] = document_trace,
		[IR_ACT_TRACEMEM] = document_tracemem,
		[IR_ACT_STACK] = document_stack,
		[IR_ACT_PRINTA] = document_printa,
		[IR_ACT_HIST] = document_hist,
	},
	.last_agg = document_last_agg,
	.last_aggs_asked = true,
	.drops = document_drops,
};
