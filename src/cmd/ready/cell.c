#include "cmd/ready/cell.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/strbuf.h"
#include "base/utf8.h"

static int64_t number(const struct dtap_value *v)
{
	return v->type == DTAP_INT ? v->i : v->type == DTAP_UINT ? (int64_t)v->u : v->type == DTAP_FLOAT ? (int64_t)v->f : 0;
}

/* Copy a stack into one allocation, frames and texts. */
static int keep_stack(struct dtap_value *v)
{
	size_t size = (v->stack.n + 1) * sizeof(char *);
	const char **frames;
	char *text;

	for (size_t i = 0; i < v->stack.n; i++)
		size += strlen(v->stack.frames[i]) + 1;
	frames = malloc(size);
	if (!frames)
		return -ENOMEM;
	text = (char *)(frames + v->stack.n + 1);
	for (size_t i = 0; i < v->stack.n; i++) {
		frames[i] = text;
		text = stpcpy(text, v->stack.frames[i]) + 1;
	}
	v->stack.frames = frames;
	return 0;
}

int ready_value_keep(struct dtap_value *v)
{
	if (v->type == DTAP_STACK)
		return keep_stack(v);
	if (v->type == DTAP_STRING)
		v->s = strdup(v->s);
	return v->type == DTAP_STRING && !v->s ? -ENOMEM : 0;
}

void ready_value_drop(const struct dtap_value *v)
{
	if (v->type == DTAP_STACK)
		free((void *)(size_t)v->stack.frames);
	else if (v->type == DTAP_STRING)
		free((char *)(size_t)v->s);
}

void ready_time(int64_t ns, struct strbuf *out)
{
	static const struct {
		double ns;
		const char *name;
	} units[] = { { 1e9, "s" }, { 1e6, "ms" }, { 1e3, "us" }, { 1, "ns" } };
	double t = (double)ns;
	size_t i = 0;

	while (i < 3 && t < units[i].ns)
		i++;
	t /= units[i].ns;
	strbuf_printf(out, t < 10 && i < 3 ? "%.2f %s" : t < 100 && i < 3 ? "%.1f %s" : "%.0f %s", t, units[i].name);
}

static void put_change(int64_t ns, struct strbuf *out)
{
	strbuf_putc(out, ns < 0 ? '-' : '+');
	ready_time(ns < 0 && ns > INT64_MIN ? -ns : ns, out);
}

/* Is it a control character: C0, DEL, or C1 in UTF-8? */
static bool is_control(const char *s)
{
	return (unsigned char)*s < 0x20 || *s == 0x7f || ((unsigned char)*s == 0xc2 && (unsigned char)s[1] < 0xa0);
}

/* Set @out to a frame without the brackets of a Python frame "[ FILE:LINE (FUNCTION) ]". */
static void frame_text(const char *frame, struct strbuf *out)
{
	size_t len;

	while (*frame == ' ')
		frame++;
	len = strlen(frame);
	if (len > 4 && !strncmp(frame, "[ ", 2) && !strcmp(frame + len - 2, " ]")) {
		len -= 4;
		frame += 2;
	}
	strbuf_clear(out);
	strbuf_add(out, frame, len);
}

static void put_plain(const char *s, struct strbuf *out)
{
	for (size_t n; *s; s += n ? n : 1) {
		n = utf8_bytes(s);
		if (!n || is_control(s))
			strbuf_putc(out, '?');
		else
			strbuf_add(out, s, n);
	}
}

/* The innermost function first. */
static void put_stack(const struct dtap_value *v, struct strbuf *out)
{
	struct strbuf frame = { 0 };

	for (size_t i = 0; i < v->stack.n; i++) {
		frame_text(v->stack.frames[i], &frame);
		strbuf_puts(out, i ? " < " : "");
		put_plain(strbuf_str(&frame), out);
	}
	strbuf_fini(&frame);
}

void ready_cell(enum ready_kind kind, const struct dtap_value *v, struct strbuf *out)
{
	if (v->type == DTAP_STRING)
		put_plain(v->s, out);
	else if (v->type == DTAP_STACK)
		put_stack(v, out);
	else if (kind == READY_TIME && number(v) >= 0)
		ready_time(number(v), out);
	else if (kind == READY_TIME)
		;
	else if (kind == READY_CHANGE)
		put_change(number(v), out);
	else if (kind == READY_MORE)
		strbuf_printf(out, "%+" PRId64, number(v));
	else if (kind == READY_CLOCK)
		strbuf_printf(out, "%.6f", (double)number(v) / 1e9);
	else if (kind == READY_BOOL)
		strbuf_puts(out, number(v) ? "yes" : "no");
	else if (kind == READY_ARROW)
		strbuf_puts(out, number(v) ? "->" : "<-");
	else
		strbuf_printf(out, "%" PRId64, number(v));
}

bool ready_is_number(enum ready_kind kind)
{
	return kind != READY_TEXT && kind != READY_WORD && kind != READY_LOCK && kind != READY_PATH && kind != READY_BOOL &&
	       kind != READY_ARROW && kind != READY_STACK;
}

void ready_name(const struct ready_column *c, struct strbuf *out)
{
	strbuf_puts(out, c->name);
	if (c->kind == READY_TIME || c->kind == READY_CHANGE || c->kind == READY_CLOCK)
		strbuf_puts(out, "_ns");
}

void ready_utf8(const char *s, struct strbuf *out)
{
	for (size_t n; *s; s += n ? n : 1) {
		n = utf8_bytes(s);
		strbuf_add(out, n ? s : "\xef\xbf\xbd", n ? n : 3);
	}
}

void ready_json_text(const char *s, struct strbuf *out)
{
	strbuf_putc(out, '"');
	for (size_t n; *s; s += n ? n : 1) {
		n = utf8_bytes(s);
		if (!n)
			strbuf_puts(out, "\\ufffd");
		else if (*s == '"' || *s == '\\')
			strbuf_printf(out, "\\%c", *s);
		else if ((unsigned char)*s < 0x20)
			strbuf_printf(out, "\\u%04x", (unsigned char)*s);
		else
			strbuf_add(out, s, n);
	}
	strbuf_putc(out, '"');
}

/* A list of frames, the innermost first. */
static void json_stack(const struct dtap_value *v, struct strbuf *out)
{
	struct strbuf frame = { 0 };

	for (size_t i = 0; i < v->stack.n; i++) {
		frame_text(v->stack.frames[i], &frame);
		strbuf_putc(out, i ? ',' : '[');
		ready_json_text(strbuf_str(&frame), out);
	}
	strbuf_puts(out, v->stack.n ? "]" : "[]");
	strbuf_fini(&frame);
}

void ready_json(enum ready_kind kind, const struct dtap_value *v, struct strbuf *out)
{
	if (v->type == DTAP_STRING)
		ready_json_text(v->s, out);
	else if (v->type == DTAP_STACK)
		json_stack(v, out);
	else if (kind == READY_TIME && number(v) < 0)
		strbuf_puts(out, "null");
	else if (kind == READY_BOOL)
		strbuf_puts(out, number(v) ? "true" : "false");
	else if (kind == READY_ARROW)
		strbuf_puts(out, number(v) ? "\"call\"" : "\"return\"");
	else
		strbuf_printf(out, "%" PRId64, number(v));
}

void ready_csv_text(const char *s, struct strbuf *out)
{
	if (!strpbrk(s, ",\"\r\n")) {
		strbuf_puts(out, s);
		return;
	}
	strbuf_putc(out, '"');
	for (; *s; s++) {
		if (*s == '"')
			strbuf_putc(out, '"');
		strbuf_putc(out, *s);
	}
	strbuf_putc(out, '"');
}

void ready_csv(enum ready_kind kind, const struct dtap_value *v, struct strbuf *out)
{
	struct strbuf stack = { 0 };

	if (v->type == DTAP_STACK) {
		put_stack(v, &stack);
		ready_csv_text(strbuf_str(&stack), out);
		strbuf_fini(&stack);
	} else if (v->type == DTAP_STRING)
		ready_csv_text(v->s, out);
	else if (kind == READY_ARROW)
		strbuf_puts(out, number(v) ? "call" : "return");
	else if (kind != READY_TIME || number(v) >= 0)
		strbuf_printf(out, "%" PRId64, number(v));
}
