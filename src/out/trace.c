#include "out/trace.h"

#include <stdio.h>
#include <string.h>

#include "lang/format.h"
#include "out/field.h"
#include "out/names.h"
#include "out/sink.h"

enum { FLOW_WIDTH = 41 };

/* Column widths as in DTrace for Linux: of trace(), wide enough for each number of the type, and of keys. */
static const struct widths {
	int word, dword, string;	/* numbers of 4 and of 8 bytes */
} trace_widths = { 10, 19, 33 }, key_widths = { 8, 16, 50 };

enum flow { FLOW_NONE, FLOW_ENTRY, FLOW_RETURN };

/* Is @name @word, or does it end in -@word?  ("carpentry" is not an entry.) */
static bool names(const char *name, const char *word)
{
	size_t n = strlen(name), w = strlen(word);

	return n >= w && !strcmp(name + n - w, word) && (n == w || name[n - w - 1] == '-');
}

static bool same_firing(const struct out_firing *a, const struct out_firing *b)
{
	return a->id == b->id && a->time_ns == b->time_ns && a->tid == b->tid &&
	       (a->epid != b->epid || a->rec != b->rec);
}

/*
 * The clauses of one firing, or the parts of a clause with ifs, are one step: the first of an entry indents, the
 * last of a return ends the indentation.  libdtrace compares only the probe: enough where a probe belongs to one
 * function, but a marker's probe fires for every function.
 */
static enum flow flow_of(const struct out_lines *l, const struct out_firing *f, const struct out_firing *next)
{
	if (names(f->name, "entry"))
		return same_firing(&l->last, f) ? FLOW_NONE : FLOW_ENTRY;
	if (names(f->name, "return"))
		return next && same_firing(f, next) ? FLOW_NONE : FLOW_RETURN;
	return FLOW_NONE;
}

static void flow_line(struct out_sink *s, struct out_lines *l, const struct out_firing *f,
		      const struct out_firing *next)
{
	bool syscall = !strcmp(f->prov, "syscall");
	enum flow flow = flow_of(l, f, next);
	const char *arrow = "| ";
	size_t used;

	if (flow == FLOW_ENTRY)
		arrow = syscall ? " => " : " -> ";
	if (flow == FLOW_RETURN) {
		arrow = syscall ? " <= " : " <- ";
		l->indent -= l->indent ? 2 : 0;
	}
	out_format(s, "%3u ", f->cpu);
	out_pad(s, ' ', l->indent);
	out_puts(s, arrow);
	out_puts(s, f->func);
	used = l->indent + strlen(arrow) + strlen(f->func);
	if (flow == FLOW_NONE) {
		out_putc(s, ':');
		out_puts(s, f->name);
		used += 1 + strlen(f->name);
	}
	out_pad(s, ' ', used < FLOW_WIDTH ? FLOW_WIDTH - used + 1 : 1);
	if (flow == FLOW_ENTRY)
		l->indent += 2;
	l->last = *f;
}

/* CPU, probe and name. */
static void put_firing(struct out_sink *s, struct out_lines *l, const struct out_firing *f)
{
	const struct out_firing *of = &l->column_of;
	size_t names, len;

	if (l->column_len && of->cpu == f->cpu && of->id == f->id && of->func == f->func && of->name == f->name) {
		out_put(s, l->column, l->column_len);
		return;
	}
	names = strlen(f->func) + 1 + strlen(f->name);
	len = (size_t)snprintf(l->column, sizeof(l->column), "%3u %6u %*s%s:%s ", f->cpu, f->id, names < 32 ? (int)(32 - names) : 0, "",
			       f->func, f->name);
	l->column_len = len < sizeof(l->column) ? len : 0;
	l->column_of = *f;
	if (l->column_len)
		out_put(s, l->column, len);
	else
		out_format(s, "%3u %6u %s:%s ", f->cpu, f->id, f->func, f->name);
}

void out_line_begin(struct out_sink *s, struct out_lines *l, const struct out_firing *f,
		    const struct out_firing *next)
{
	if (!l->headed && l->flow)
		out_format(s, "%3s %-*s\n", "CPU", FLOW_WIDTH, "FUNCTION");
	else if (!l->headed && !l->quiet)
		out_format(s, "%3s %6s %32s\n", "CPU", "ID", "FUNCTION:NAME");
	l->headed = true;
	if (l->flow) {
		flow_line(s, l, f, next);
	} else if (!l->quiet) {
		put_firing(s, l, f);
	}
}

void out_line_end(struct out_sink *s, const struct out_lines *l)
{
	if (!l->quiet)
		out_putc(s, '\n');
}

static void put_value(struct out_sink *s, const struct out_spec *spec, const struct ir_value *v,
		      const struct ir_slot *slot)
{
	if (v->type == IR_STR)
		out_field_string(s, spec, v->s);
	else if (slot->sign)
		out_field_signed(s, spec, v->i);
	else
		out_field_unsigned(s, spec, (uint64_t)v->i, 10, false);
}

/* Columns: integers right-aligned in a width by their size after one blank, strings left-aligned after two. */
static void put_column(struct out_sink *s, const struct ir_value *v, const struct ir_slot *slot, const struct widths *w)
{
	struct out_spec spec = { .prec = -1 };
	char text[512];

	if (slot->show == IR_SHOW_STACK && s->names) {
		names_put_stack(s->names, s, (uint64_t)v->i, s->stack_indent);
		return;
	}
	if (slot->show && s->names) {
		out_puts(s, "  ");
		spec.flags = FMT_LEFT;
		spec.width = key_widths.string;
		out_field_string(s, &spec, names_text(s->names, slot->show, (uint64_t)v->i, text, sizeof(text)));
		return;
	}
	if (v->type == IR_STR) {
		out_puts(s, "  ");
		spec.flags = FMT_LEFT;
		spec.width = w->string;
	} else {
		out_putc(s, ' ');
		spec.width = slot->width == 1 ? 3 : slot->width == 2 ? 5 : slot->width == 4 ? w->word : w->dword;
	}
	put_value(s, &spec, v, slot);
}

enum { BYTES_ROW = 16, BYTES_MARGIN = 5 };

static void put_bytes_head(struct out_sink *s)
{
	out_format(s, "\n%*s      ", BYTES_MARGIN, "");
	for (unsigned int k = 0; k < BYTES_ROW; k++)
		out_format(s, "  %x", k);
	out_puts(s, "  0123456789abcdef\n");
}

/* The row for the @n bytes at offset @at. */
static void put_bytes_row(struct out_sink *s, const unsigned char *bytes, size_t at, size_t n)
{
	out_format(s, "%*s%5zx:", BYTES_MARGIN, "", at);
	for (size_t k = 0; k < n; k++)
		out_format(s, " %02x", bytes[k]);
	out_pad(s, ' ', 3 * (BYTES_ROW - n) + 2);
	for (size_t k = 0; k < n; k++)
		out_putc(s, bytes[k] >= ' ' && bytes[k] <= '~' ? (char)bytes[k] : '.');
	out_putc(s, '\n');
}

/* A string, padded with zeros to @size bytes, as a table. */
static void put_raw(struct out_sink *s, const char *text, unsigned int size)
{
	unsigned char bytes[16];
	size_t len = strlen(text);

	put_bytes_head(s);
	for (size_t at = 0; at < size; at += sizeof(bytes)) {
		size_t n = size - at < sizeof(bytes) ? size - at : sizeof(bytes);

		memset(bytes, 0, sizeof(bytes));
		if (at < len)
			memcpy(bytes, text + at, len - at < n ? len - at : n);
		put_bytes_row(s, bytes, at, n);
	}
}

void out_trace(struct out_sink *s, const struct ir_value *v, const struct ir_slot *slot, const struct out_lines *l)
{
	static const struct out_spec bare = { .prec = -1 };

	if (l->rawbytes && v->type == IR_STR)
		put_raw(s, v->s, l->rawbytes);
	else if (l->quiet && slot->show != IR_SHOW_STACK)
		put_value(s, &bare, v, slot);
	else
		put_column(s, v, slot, &trace_widths);
}

void out_key(struct out_sink *s, const struct ir_value *v, const struct ir_slot *slot)
{
	struct ir_slot shown = *slot;
	struct ir_value part = *v;

	/* libdtrace reads keys of one and two bytes as unsigned numbers, whatever their type. */
	if (v->type == IR_INT && !slot->show && slot->width < 4) {
		shown.sign = false;
		part.i = (int64_t)((uint64_t)v->i & (((uint64_t)1 << slot->width * 8) - 1));
	}
	put_column(s, &part, &shown, &key_widths);
}

/* A control character that moves the cursor, or rings, is printed as well; an array of NULs alone is no text. */
bool out_is_text(const unsigned char *bytes, size_t n)
{
	size_t len = 0;

	while (len < n && ((bytes[len] >= ' ' && bytes[len] <= '~') || (bytes[len] >= '\a' && bytes[len] <= '\r')))
		len++;
	if (!len)
		return false;
	while (len < n && !bytes[len])
		len++;
	return len == n;
}

/* DTrace guide, "trace": the table of a buffer that is not text. */
void out_bytes(struct out_sink *s, const unsigned char *bytes, size_t n)
{
	put_bytes_head(s);
	for (size_t at = 0; at < n; at += BYTES_ROW)
		put_bytes_row(s, bytes + at, at, n - at < BYTES_ROW ? n - at : BYTES_ROW);
}
