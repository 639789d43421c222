/*
 * Records as a document (-x oformat): one list of probes, of which each has what its clause's actions print.
 *
 * Source: FreeBSD dtrace(1), "STRUCTURED OUTPUT".  Beyond what it says: printa() gives an object for each aggregation
 * whatever its format, a stack's frames without a function have their symbol alone, and the aggregations of the end (-O)
 * are those of a probe "AGGREGATION".
 */
#include "session/private.h"

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

int structured_begin(struct session *s)
{
	if (!strcmp(s->opts.text[OPT_oformat], "text"))
		return 0;
	s->doc = malloc(sizeof(*s->doc));
	if (!s->doc)
		return -ENOMEM;
	doc_begin(s->doc, s->conf.out, !strcmp(s->opts.text[OPT_oformat], "xml"));
	doc_object(s->doc, "dtrace");
	doc_list(s->doc, "probes");
	return 0;
}

void structured_end(struct session *s)
{
	if (s->doc)
		doc_end(s->doc);
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

void structured_probe(struct session *s, uint32_t cpu, const struct probe *p)
{
	const char *const names[] = { p->prov, p->mod, p->func, p->name };

	open_probe(s->doc, cpu, p->id, names);
	doc_list(s->doc, "output");
}

void structured_probe_end(struct session *s)
{
	doc_close(s->doc);
	doc_close(s->doc);
}

/* --- values ------------------------------------------------------------------------------------------- */

/* "module`name+0x12": its parts, where there are any. */
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
	if (s->names)
		names_put_stack(s->names, &text, number, 0);
	doc_list(s->doc, name);
	lines = strdup(out_text(&text));
	for (line = lines ? strtok_r(lines, "\n", &rest) : NULL; line; line = strtok_r(NULL, "\n", &rest)) {
		doc_item(s->doc);
		doc_text(s->doc, "symbol", line);
		put_symbol_parts(s->doc, line, "module");
		doc_close(s->doc);
	}
	doc_close(s->doc);
	free(lines);
	out_close(&text);
}

/* A value as trace() takes it. */
static void put_value(struct session *s, const char *name, const struct ir_value *v, const struct ir_slot *slot)
{
	char text[512];

	if (v->type == IR_STR)
		doc_text(s->doc, name, v->s);
	else if (slot->show == IR_SHOW_FLOAT)
		doc_float(s->doc, name, out_float((uint64_t)v->i, slot->width));
	else if (slot->show && slot->show != IR_SHOW_STACK && s->names)
		doc_text(s->doc, name, names_text(s->names, slot->show, (uint64_t)v->i, text, sizeof(text)));
	else if (slot->sign)
		doc_signed(s->doc, name, v->i);
	else
		doc_unsigned(s->doc, name, (uint64_t)v->i);
}

void structured_values(struct session *s, const char *name, const struct ir_value *v, const struct ir_slot *slots, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		doc_item(s->doc);
		put_value(s, name, &v[i], &slots[i]);
		doc_close(s->doc);
	}
}

void structured_text(struct session *s, const char *name, const char *text)
{
	doc_item(s->doc);
	doc_text(s->doc, name, text);
	doc_close(s->doc);
}

void structured_symbol(struct session *s, uint64_t number, enum ir_show show)
{
	static const char *const names[] = { [IR_SHOW_ADDR] = "uaddr", [IR_SHOW_SYM] = "usym", [IR_SHOW_MOD] = "umod" };
	char text[512];

	doc_item(s->doc);
	if (show == IR_SHOW_STACK) {
		put_frames(s, number, "ustack-frames");
	} else if (s->names && show < sizeof(names) / sizeof(names[0])) {
		names_text(s->names, show, number, text, sizeof(text));
		doc_text(s->doc, names[show], text);
		put_symbol_parts(s->doc, text, "object");
	}
	doc_close(s->doc);
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

	doc_item(s->doc);
	doc_list(s->doc, "keys");
	for (uint32_t i = 0; i < a->agg->nkeys; i++)
		put_value(s, NULL, &line->keys[i], &line->slots[i]);
	doc_close(s->doc);
	if (out_is_hist(a->agg)) {
		put_buckets(s->doc, a, line->words);
	} else {
		v = out_agg_value(a->agg, line->words, a->normal, &sign);
		if (sign)
			doc_signed(s->doc, functions[a->agg->fn], v);
		else
			doc_unsigned(s->doc, functions[a->agg->fn], (uint64_t)v);
	}
	doc_close(s->doc);
	return 0;
}

int structured_agg(struct session *s, const struct out_agg *a, const struct out_agg_order *order)
{
	int e;

	doc_item(s->doc);
	doc_list(s->doc, "aggregation-data");
	e = out_agg_each(a, order, put_line, s);
	doc_close(s->doc);
	doc_text(s->doc, "aggregation-name", a->agg->name);
	doc_close(s->doc);
	return e;
}

int structured_last_agg(struct session *s, const struct out_agg *a, const struct out_agg_order *order)
{
	static const char *const names[] = { "dtrace", "INTERNAL", "INTERNAL", "AGGREGATION" };
	int e;

	open_probe(s->doc, -1, -1, names);
	doc_list(s->doc, "output");
	e = structured_agg(s, a, order);
	structured_probe_end(s);
	return e;
}

/* --- losses ------------------------------------------------------------------------------------------- */

void structured_drops(struct session *s, unsigned int kind, uint64_t n, uint64_t total)
{
	static const char *const names[] = { "dtrace", "INTERNAL", "INTERNAL", "DROP" };
	struct out_sink text;

	out_open_mem(&text);
	out_drop_words(&text, kind, n);
	out_putc(&text, '\n');
	open_probe(s->doc, -1, -1, names);
	doc_unsigned(s->doc, "count", n);
	doc_unsigned(s->doc, "total", total);
	doc_signed(s->doc, "kind", out_drop_number(kind));
	doc_text(s->doc, "msg", out_text(&text));
	doc_close(s->doc);
	out_close(&text);
}
