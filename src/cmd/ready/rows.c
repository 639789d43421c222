#include "cmd/ready/rows.h"

#include <errno.h>
#include <limits.h>
#include <stdio_ext.h>
#include <stdlib.h>
#include <string.h>

#include "base/strbuf.h"
#include "cmd/ready/cell.h"

enum { TEXT_MIN = 12 };		/* a column of text is not made narrower */

/* --- collecting ---------------------------------------------------------------------------------------- */

int ready_rows_add(struct ready_rows *rows, const struct dtap_value *cells)
{
	struct dtap_value *to;

	if (rows->n == rows->cap) {
		size_t cap = rows->cap ? 2 * rows->cap : 64;

		to = realloc(rows->cells, cap * rows->ncolumns * sizeof(*to));
		if (!to)
			return -ENOMEM;
		rows->cells = to;
		rows->cap = cap;
	}
	to = rows->cells + rows->n * rows->ncolumns;
	for (size_t i = 0; i < rows->ncolumns; i++) {
		to[i] = cells[i];
		if (ready_value_keep(&to[i]))
			to[i] = (struct dtap_value){ .type = DTAP_UINT };
	}
	rows->n++;
	return 0;
}

void ready_rows_cut(struct ready_rows *rows, size_t n)
{
	if (n >= rows->n)
		return;
	for (size_t i = n * rows->ncolumns; i < rows->n * rows->ncolumns; i++)
		ready_value_drop(&rows->cells[i]);
	rows->n = n;
}

void ready_rows_clear(struct ready_rows *rows)
{
	ready_rows_cut(rows, 0);
}

void ready_rows_fini(struct ready_rows *rows)
{
	ready_rows_clear(rows);
	free(rows->cells);
	rows->cells = NULL;
	rows->cap = 0;
}

/* --- sorting ------------------------------------------------------------------------------------------- */

static int compare_stacks(const struct dtap_value *x, const struct dtap_value *y)
{
	int c = 0;

	for (size_t i = 0; !c && i < x->stack.n && i < y->stack.n; i++)
		c = strcmp(x->stack.frames[i], y->stack.frames[i]);
	return c ? c : (x->stack.n > y->stack.n) - (x->stack.n < y->stack.n);
}

static int compare(const struct dtap_value *x, const struct dtap_value *y)
{
	if (x->type == DTAP_STACK && y->type == DTAP_STACK)
		return compare_stacks(x, y);
	if (x->type == DTAP_STRING && y->type == DTAP_STRING)
		return strcmp(x->s, y->s);
	return x->i < y->i ? -1 : x->i > y->i;
}

struct order {
	size_t column, ncolumns;
};

static int by_column(const void *x, const void *y, void *ctx)
{
	const struct dtap_value *a = x, *b = y;
	const struct order *o = ctx;
	int c = o->column < o->ncolumns ? compare(&b[o->column], &a[o->column]) : 0;

	for (size_t i = 0; !c && i < o->ncolumns; i++)
		c = compare(&a[i], &b[i]);
	return c;
}

void ready_rows_sort(struct ready_rows *rows, size_t column)
{
	struct order o = { column, rows->ncolumns };

	if (rows->n)
		qsort_r(rows->cells, rows->n, rows->ncolumns * sizeof(*rows->cells), by_column, &o);
}

/* --- text ---------------------------------------------------------------------------------------------- */

/* The number of UTF-8 characters. */
static size_t width_of(const char *s)
{
	size_t n = 0;

	for (; *s; s++)
		n += ((unsigned char)*s & 0xc0) != 0x80;
	return n;
}

/* Print @s in @width columns; 0: unlimited.  A longer text is cut at its end, or at its start if @front. */
static void put_cell(FILE *out, const char *s, size_t width, bool right, bool front, bool last)
{
	size_t n = width_of(s);

	if (!width || n <= width) {
		fprintf(out, "%*s%s%*s", right && n < width ? (int)(width - n) : 0, "", s,
			!right && !last && n < width ? (int)(width - n) : 0, "");
		return;
	}
	if (front) {
		for (size_t skip = n - width + 2; skip; skip--)
			do
				s++;
			while (((unsigned char)*s & 0xc0) == 0x80);
		fprintf(out, "..%s", s);
		return;
	}
	for (n = 0; n < width - 2; n++)
		do
			fputc(*s++, out);
		while (((unsigned char)*s & 0xc0) == 0x80);
	fputs("..", out);
}

/* Narrow the widest columns of text until a line fits into @room; 0: unlimited. */
static void fit(const struct ready_rows *rows, size_t *widths, size_t room)
{
	size_t all = 0, widest;

	for (size_t i = 0; i < rows->ncolumns; i++)
		all += widths[i] + (i ? 2 : 0);
	while (room && all > room) {
		widest = rows->ncolumns;
		for (size_t i = 0; i < rows->ncolumns; i++)
			if (!ready_is_number(rows->columns[i].kind) && widths[i] > TEXT_MIN &&
			    (widest == rows->ncolumns || widths[i] > widths[widest]))
				widest = i;
		if (widest == rows->ncolumns)
			return;
		widths[widest]--;
		all--;
	}
}

static void print_text(const struct ready_rows *rows, struct ready_run *r, size_t n)
{
	size_t *widths = calloc(rows->ncolumns, sizeof(*widths));
	struct strbuf b = { 0 };

	if (!widths)
		return;
	for (size_t i = 0; i < rows->ncolumns; i++) {
		widths[i] = width_of(rows->columns[i].title);
		for (size_t k = 0; k < n; k++) {
			strbuf_clear(&b);
			ready_cell(rows->columns[i].kind, &rows->cells[k * rows->ncolumns + i], &b);
			widths[i] = width_of(strbuf_str(&b)) > widths[i] ? width_of(strbuf_str(&b)) : widths[i];
		}
	}
	fit(rows, widths, r->width);
	for (size_t k = 0; k <= n; k++) {
		for (size_t i = 0; i < rows->ncolumns; i++) {
			const struct ready_column *c = &rows->columns[i];

			strbuf_clear(&b);
			if (k)
				ready_cell(c->kind, &rows->cells[(k - 1) * rows->ncolumns + i], &b);
			else
				strbuf_puts(&b, c->title);
			fputs(i ? "  " : "", r->out);
			put_cell(r->out, strbuf_str(&b), widths[i], ready_is_number(c->kind), k && c->kind == READY_PATH,
				 i == rows->ncolumns - 1);
		}
		fputc('\n', r->out);
		ready_line_end(r->out);
	}
	strbuf_fini(&b);
	free(widths);
}

/* --- for programs -------------------------------------------------------------------------------------- */

void ready_line_end(FILE *out)
{
	if (__fpending(out) > PIPE_BUF / 2)
		fflush(out);
}

void ready_row_json(const struct ready_column *columns, size_t n, const struct dtap_value *cells, FILE *out)
{
	struct strbuf b = { 0 }, name = { 0 };

	for (size_t i = 0; i < n; i++) {
		strbuf_clear(&name);
		ready_name(&columns[i], &name);
		strbuf_putc(&b, i ? ',' : '{');
		ready_json_text(strbuf_str(&name), &b);
		strbuf_putc(&b, ':');
		ready_json(columns[i].kind, &cells[i], &b);
	}
	fprintf(out, "%s}\n", n ? strbuf_str(&b) : "{");
	ready_line_end(out);
	strbuf_fini(&b);
	strbuf_fini(&name);
}

void ready_row_csv(const struct ready_column *columns, size_t n, const struct dtap_value *cells, FILE *out)
{
	struct strbuf b = { 0 };

	for (size_t i = 0; i < n; i++) {
		strbuf_puts(&b, i ? "," : "");
		ready_csv(columns[i].kind, &cells[i], &b);
	}
	fprintf(out, "%s\n", strbuf_str(&b));
	ready_line_end(out);
	strbuf_fini(&b);
}

void ready_titles_csv(const struct ready_column *columns, size_t n, FILE *out)
{
	struct strbuf b = { 0 };

	for (size_t i = 0; i < n; i++) {
		strbuf_puts(&b, i ? "," : "");
		ready_name(&columns[i], &b);
	}
	fprintf(out, "%s\n", strbuf_str(&b));
	ready_line_end(out);
	strbuf_fini(&b);
}

void ready_rows_print(const struct ready_rows *rows, struct ready_run *r, size_t limit)
{
	size_t n = limit && limit < rows->n ? limit : rows->n;

	r->shown += n;
	if (r->format == READY_AS_TEXT) {
		print_text(rows, r, n);
		return;
	}
	if (r->format == READY_AS_CSV && !r->titled)
		ready_titles_csv(rows->columns, rows->ncolumns, r->out);
	r->titled = true;
	for (size_t k = 0; k < n; k++)
		(r->format == READY_AS_CSV ? ready_row_csv : ready_row_json)(rows->columns, rows->ncolumns,
									   rows->cells + k * rows->ncolumns, r->out);
}
