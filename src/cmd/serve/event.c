#include "cmd/serve/event.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/strbuf.h"
#include "cmd/ready/cell.h"
#include "cmd/ready/opts.h"
#include "cmd/serve/config.h"
#include "cmd/serve/labels.h"
#include "dtap.h"

#define NS_PER_S UINT64_C(1000000000)

/* Members of an object, the first without a comma. */
static void put_name(struct strbuf *out, const char *name)
{
	char last = out->len ? out->s[out->len - 1] : '{';

	if (last != '{' && last != '[')
		strbuf_putc(out, ',');
	ready_json_text(name, out);
	strbuf_putc(out, ':');
}

static void put_text(struct strbuf *out, const char *name, const char *text)
{
	put_name(out, name);
	ready_json_text(text ? text : "", out);
}

static void put_number(struct strbuf *out, const char *name, uint64_t n)
{
	put_name(out, name);
	strbuf_printf(out, "%" PRIu64, n);
}

/* Numbers become hexadecimal digits where programs would lose some of them in a double. */
static void put_run(struct strbuf *out, uint64_t run)
{
	put_name(out, "run");
	strbuf_printf(out, "\"%016" PRIx64 "\"", run);
}

static void put_time(struct strbuf *out, enum event_form form, uint64_t ns)
{
	time_t s = (time_t)(ns / NS_PER_S);
	char text[40];
	struct tm tm;

	if (form == EVENT_ROW) {
		put_number(out, "time", (uint64_t)s);
		put_number(out, "ns", ns % NS_PER_S);
		return;
	}
	gmtime_r(&s, &tm);
	strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S", &tm);
	put_name(out, "time");
	strbuf_printf(out, "\"%s.%09" PRIu64 "Z\"", text, ns % NS_PER_S);
}

/* --- values -------------------------------------------------------------------------------------------- */

struct field {
	const char *name;
	enum ready_kind kind;
	struct dtap_value value;
};

/* Call @each with each value: of a ready-made command the columns, else the values of all actions in their order. */
static void each_field(const struct event *e, const struct dtap_record *r, void (*each)(void *ctx, const struct field *f), void *ctx)
{
	const struct ready_head *h = e->script->command ? &e->script->command->head : NULL;
	size_t at = 0;

	for (size_t i = 0; i < r->nactions; i++) {
		for (size_t k = 0; k < r->actions[i].nvalues; k++, at++) {
			struct field f = { .kind = READY_INT, .value = r->actions[i].values[k] };
			char number[24];

			snprintf(number, sizeof(number), "v%zu", at + 1);
			f.name = h && at < h->ncolumns ? h->columns[at].name :
				 at < e->script->fields.n ? e->script->fields.v[at] : number;
			if (h && at < h->ncolumns)
				f.kind = h->columns[at].kind;
			if (f.kind == READY_CLOCK && f.value.type != DTAP_STRING)
				f.value.u += e->wall_off_ns;
			if (strcmp(f.name, "-"))
				each(ctx, &f);
		}
	}
}

static void put_value(enum ready_kind kind, const struct dtap_value *v, struct strbuf *out)
{
	if (v->type == DTAP_FLOAT)
		strbuf_printf(out, isfinite(v->f) ? "%.17g" : "null", v->f);
	else if (v->type == DTAP_UINT && kind != READY_TIME && kind != READY_BOOL && kind != READY_ARROW)
		strbuf_printf(out, "%" PRIu64, v->u);
	else
		ready_json(kind, v, out);
}

static void put_member(void *ctx, const struct field *f)
{
	put_name(ctx, f->name);
	put_value(f->kind, &f->value, ctx);
}

/* Three arrays of the same length. */
struct arrays {
	struct strbuf names, texts, numbers;
};

static void add_field(struct arrays *a, const char *name)
{
	struct strbuf *all[] = { &a->names, &a->texts, &a->numbers };

	for (size_t i = 0; a->names.len && i < sizeof(all) / sizeof(all[0]); i++)
		strbuf_putc(all[i], ',');
	ready_json_text(name, &a->names);
}

static void put_element(void *ctx, const struct field *f)
{
	struct arrays *a = ctx;
	const struct dtap_value *v = &f->value;
	struct strbuf frames = { 0 };

	add_field(a, f->name);
	if (v->type == DTAP_STACK) {
		for (size_t i = 0; i < v->stack.n; i++)
			strbuf_printf(&frames, "%s%s", i ? "\n" : "", v->stack.frames[i]);
		ready_json_text(strbuf_str(&frames), &a->texts);
		strbuf_fini(&frames);
	} else {
		ready_json_text(v->type == DTAP_STRING ? v->s : "", &a->texts);
	}
	if (v->type == DTAP_STRING || v->type == DTAP_STACK || (v->type == DTAP_FLOAT && !isfinite(v->f)))
		strbuf_putc(&a->numbers, '0');
	else
		put_value(READY_INT, v, &a->numbers);
}

/* --- the line ------------------------------------------------------------------------------------------ */

static void put_fields(enum event_form form, const struct event *e, const struct dtap_record *r, struct strbuf *out)
{
	const struct serve_pairs *asked = &e->config->labels;
	struct arrays a = { 0 };

	if (form == EVENT_LINE) {
		put_name(out, "labels");
		strbuf_putc(out, '{');
		for (size_t i = 0; e->labels && i < e->labels->nvalues && i < asked->n; i++)
			put_text(out, asked->v[i].name, e->labels->values[i]);
		strbuf_putc(out, '}');
		put_name(out, "fields");
		strbuf_putc(out, '{');
		each_field(e, r, put_member, out);
		strbuf_putc(out, '}');
		return;
	}
	for (size_t i = 0; e->labels && i < e->labels->nvalues && i < asked->n; i++) {
		add_field(&a, asked->v[i].name);
		ready_json_text(e->labels->values[i] ? e->labels->values[i] : "", &a.texts);
		strbuf_putc(&a.numbers, '0');
	}
	each_field(e, r, put_element, &a);
	strbuf_printf(out, ",\"names\":[%s],\"texts\":[%s],\"numbers\":[%s]", strbuf_str(&a.names), strbuf_str(&a.texts),
		      strbuf_str(&a.numbers));
	strbuf_fini(&a.names);
	strbuf_fini(&a.texts);
	strbuf_fini(&a.numbers);
}

/* What printf() has printed, without the newline at the end. */
static void put_printed(const struct dtap_record *r, struct strbuf *out)
{
	struct strbuf text = { 0 };

	for (size_t i = 0; i < r->nactions; i++)
		strbuf_puts(&text, r->actions[i].text ? r->actions[i].text : "");
	while (text.len && text.s[text.len - 1] == '\n')
		text.s[--text.len] = 0;
	put_text(out, "text", strbuf_str(&text));
	strbuf_fini(&text);
}

/* Does it have something to tell?  What a ready-made command prints beside its columns is for people. */
static bool tells(const struct serve_script *s, const struct dtap_record *r)
{
	if (s->command)
		return r->nactions == 1 && r->actions[0].nvalues == s->command->head.ncolumns && strcmp(r->provider, "dtrace");
	for (size_t i = 0; i < r->nactions; i++)
		if (r->actions[i].text || r->actions[i].nvalues)
			return true;
	return false;
}

bool event_write(enum event_form form, const struct event *e, const struct dtap_record *r, struct strbuf *out)
{
	const struct labels *l = e->labels;
	const struct { const char *name, *text; } texts[] = {
		{ "host", e->config->machine }, { "boot", e->boot }, { "script", e->script->name }, { "hash", e->script->hash },
		{ "unit", l ? l->unit : "" }, { "container", l ? l->container : "" }, { "interpreter", l ? l->interpreter : "" },
		{ "provider", r->provider }, { "module", r->module }, { "function", r->function }, { "probe", r->name },
	};

	if (!tells(e->script, r))
		return false;
	strbuf_putc(out, '{');
	put_time(out, form, r->time_ns + e->wall_off_ns);
	put_run(out, e->run);
	put_number(out, "seq", e->sequence(e->ctx));
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		put_text(out, texts[i].name, texts[i].text);
	put_number(out, "pid", r->pid);
	put_number(out, "tid", r->tid);
	put_printed(r, out);
	put_fields(form, e, r, out);
	strbuf_puts(out, "}\n");
	return true;
}
