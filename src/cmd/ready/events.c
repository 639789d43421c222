/*
 * The form "events": a line for each printf() as it happens; its arguments are the columns.
 *
 * What BEGIN and END print is shown in the text format only.  The width of a column depends on its kind, since later
 * values are not known yet; the last column has no fixed width.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/strbuf.h"
#include "cmd/ready/cell.h"
#include "cmd/ready/perfetto.h"
#include "cmd/ready/rows.h"
#include "cmd/ready/run.h"

#define STEP "task-step-"	/* probes, but for "begin" and "end" */

static int width_of(enum ready_kind kind)
{
	static const signed char widths[READY_KINDS] = {
		[READY_INT] = 8, [READY_COUNT] = 8, [READY_TIME] = 8, [READY_CHANGE] = 9, [READY_MORE] = 8, [READY_CLOCK] = 11,
		[READY_PID] = 7, [READY_TEXT] = -20, [READY_WORD] = -6, [READY_PATH] = -28, [READY_BOOL] = -5, [READY_ARROW] = -2,
	};

	return widths[kind];
}

/* The separator after a column. */
static const char *end_of(const struct ready_head *h, size_t i)
{
	return i + 1 == h->ncolumns ? "\n" : h->columns[i].kind == READY_ARROW ? " " : "  ";
}

/* The width of column @i.  A text that is indented, alone or after an arrow, has more. */
static int room_of(const struct ready_head *h, size_t i)
{
	enum { INDENTED = 36 };
	size_t at = i && h->columns[i - 1].kind == READY_ARROW ? i - 1 : i;

	if (i + 1 == h->ncolumns)
		return 0;
	return h->columns[i].kind == READY_TEXT && at && h->columns[at - 1].kind == READY_INDENT ? -INDENTED :
												     width_of(h->columns[i].kind);
}

static void put_titles(struct ready_run *r)
{
	const struct ready_head *h = &r->req->head;

	if (r->titled)
		return;
	r->titled = true;
	if (r->format == READY_AS_CSV) {
		ready_titles_csv(h->columns, h->ncolumns, r->out);
		return;
	}
	for (size_t i = 0; r->format == READY_AS_TEXT && i < h->ncolumns; i++)
		if (h->columns[i].kind != READY_INDENT)
			fprintf(r->out, "%*s%s", room_of(h, i),
				strcmp(h->columns[i].title, "-") ? h->columns[i].title : "", end_of(h, i));
}

/* Copy the values to @cells, with clocks relative to the start. */
static void set_clocks(const struct ready_run *r, const struct dtap_value *v, struct dtap_value *cells)
{
	const struct ready_head *h = &r->req->head;

	for (size_t i = 0; i < h->ncolumns; i++) {
		cells[i] = v[i];
		if (h->columns[i].kind == READY_CLOCK)
			cells[i].u -= r->began_ns;
	}
}

static void put_line(struct ready_run *r, const struct dtap_value *v)
{
	const struct ready_head *h = &r->req->head;
	struct strbuf line = { 0 }, cell = { 0 };
	int indent = 0;

	for (size_t i = 0; i < h->ncolumns; i++) {
		enum ready_kind kind = h->columns[i].kind;
		int room = room_of(h, i);

		if (kind == READY_INDENT) {
			indent = v[i].i > 0 && v[i].i < 1000 ? 2 * (int)v[i].i : 0;
			strbuf_printf(&line, "%*s", indent, "");
			continue;
		}
		strbuf_clear(&cell);
		ready_cell(kind, &v[i], &cell);
		if (kind == READY_TEXT && indent) {
			room = room + indent < 0 ? room + indent : 0;
			indent = 0;
		}
		strbuf_printf(&line, "%*s%s", room, strbuf_str(&cell), end_of(h, i));
	}
	fputs(strbuf_str(&line), r->out);
	ready_line_end(r->out);
	strbuf_fini(&line);
	strbuf_fini(&cell);
}

/* --- Chrome's trace format ----------------------------------------------------------------------------- */

/*
 * "Trace Event Format": a call is B and its return E; a line for a whole call is X with its duration.  Times are in
 * microseconds.  All other columns are arguments.
 */
static void put_chrome(struct ready_run *r, const struct dtap_value *v)
{
	const struct ready_head *h = &r->req->head;
	struct strbuf event = { 0 }, args = { 0 }, name = { 0 };
	const char *phase = "i";
	bool named = false;
	int pids = 0;

	strbuf_puts(&event, r->titled ? ",\n{" : "[\n{");
	r->titled = true;
	for (size_t i = 0; i < h->ncolumns; i++) {
		const struct ready_column *c = &h->columns[i];

		if (c->kind == READY_CLOCK) {
			strbuf_printf(&event, "\"ts\":%.3f,", (double)v[i].i / 1e3);
		} else if (c->kind == READY_PID && pids < 2) {
			strbuf_printf(&event, "\"%s\":%" PRId64 ",", pids++ ? "tid" : "pid", v[i].i);
		} else if (c->kind == READY_ARROW) {
			phase = v[i].i ? "B" : "E";
		} else if (c->kind == READY_TIME && v[i].i >= 0 && *phase == 'i') {
			strbuf_printf(&event, "\"dur\":%.3f,", (double)v[i].i / 1e3);
			phase = "X";
		} else if (c->kind == READY_TEXT && v[i].type == DTAP_STRING && !named) {
			ready_json_text(v[i].s, &name);
			named = true;
		} else if (c->kind != READY_INDENT && c->kind != READY_TIME) {
			strbuf_puts(&args, args.len ? "," : "");
			ready_json_text(c->name, &args);
			strbuf_putc(&args, ':');
			ready_json(c->kind, &v[i], &args);
		}
	}
	fprintf(r->out, "%s\"ph\":\"%s\",\"name\":%s,\"args\":{%s}}", strbuf_str(&event), phase, named ? strbuf_str(&name) : "\"\"",
		strbuf_str(&args));
	strbuf_fini(&event);
	strbuf_fini(&args);
	strbuf_fini(&name);
}

static void put_perfetto(struct ready_run *r, const struct dtap_value *v)
{
	if (!r->state)
		r->state = calloc(1, sizeof(struct perfetto));
	if (r->state)
		perfetto_event(r->state, r, v);
}

/* Whether a task begins or ends a step is no line, but in a Perfetto trace it tells where other events belong. */
static void put_step(struct ready_run *r, const struct dtap_record *rec, const struct dtap_action *a)
{
	bool is_step = a->nvalues == 4 && a->values[3].type == DTAP_STRING;

	if (r->format != READY_AS_PERFETTO || !is_step)
		return;
	if (!r->state)
		r->state = calloc(1, sizeof(struct perfetto));
	if (r->state)
		perfetto_step(r->state, r, a->values, !strcmp(rec->name, STEP "begin"));
}

static void fini(struct ready_run *r)
{
	if (r->state)
		perfetto_fini(r->state);
	free(r->state);
	r->state = NULL;
}

/* --- the form ------------------------------------------------------------------------------------------ */

static void put_event(struct ready_run *r, const struct dtap_value *cells)
{
	const struct ready_head *h = &r->req->head;

	if (r->format == READY_AS_CHROME) {
		put_chrome(r, cells);
		return;
	}
	if (r->format == READY_AS_PERFETTO) {
		put_perfetto(r, cells);
		return;
	}
	put_titles(r);
	if (r->format == READY_AS_TEXT)
		put_line(r, cells);
	else
		(r->format == READY_AS_CSV ? ready_row_csv : ready_row_json)(h->columns, h->ncolumns, cells, r->out);
}

static void record(struct ready_run *r, const struct dtap_record *rec)
{
	const struct ready_head *h = &r->req->head;

	struct dtap_value cells[READY_COLUMNS];

	for (size_t i = 0; i < rec->nactions; i++) {
		const struct dtap_action *a = &rec->actions[i];

		if (strcmp(a->name, "printf") || (r->req->rows && r->shown == r->req->rows))
			continue;
		if (!strncmp(rec->name, STEP, strlen(STEP))) {
			put_step(r, rec, a);
			continue;
		}
		if (!strcmp(rec->provider, "dtrace") || a->nvalues != h->ncolumns) {
			fputs(r->format == READY_AS_TEXT ? a->text : "", r->out);
			continue;
		}
		set_clocks(r, a->values, cells);
		put_event(r, cells);
		r->shown++;
		if (r->req->rows && r->shown == r->req->rows)
			dtap_stop(r->t);
	}
}

static int show(struct ready_run *r, bool last)
{
	if (last && r->format == READY_AS_CHROME)
		fputs(r->titled ? "\n]\n" : "[]\n", r->out);
	else if (last && r->format != READY_AS_PERFETTO)
		put_titles(r);
	return 0;
}

const struct ready_form_ops ready_events_ops = { .record = record, .show = show, .fini = fini };
