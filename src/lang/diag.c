#include "lang/diag.h"

#include <string.h>

#include "base/arena.h"
#include "base/strbuf.h"

void diag_init(struct diag *d, struct arena *a)
{
	memset(d, 0, sizeof(*d));
	d->arena = a;
	d->max = DIAG_MAX_ERRORS;
}

static void add(struct diag *d, enum diag_level level, struct src_pos pos, const char *tag, const char *fmt,
		va_list ap)
{
	struct diag_msg *m;

	if (level == DIAG_ERROR ? d->errors++ >= d->max : d->warnings++ >= d->max)
		return;
	d->msgs = arena_grow(d->arena, d->msgs, &d->cap, d->n, sizeof(*d->msgs));
	m = &d->msgs[d->n++];
	m->level = level;
	m->pos = pos;
	m->tag = tag;
	m->text = arena_vprintf(d->arena, fmt, ap);
	m->hint = NULL;
}

void diag_verror(struct diag *d, struct src_pos pos, const char *tag, const char *fmt, va_list ap)
{
	add(d, DIAG_ERROR, pos, tag, fmt, ap);
}

void diag_error(struct diag *d, struct src_pos pos, const char *tag, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	add(d, DIAG_ERROR, pos, tag, fmt, ap);
	va_end(ap);
}

void diag_warn(struct diag *d, struct src_pos pos, const char *tag, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	add(d, DIAG_WARNING, pos, tag, fmt, ap);
	va_end(ap);
}

void diag_hint(struct diag *d, const char *fmt, ...)
{
	va_list ap;

	if (!d->n)
		return;
	va_start(ap, fmt);
	d->msgs[d->n - 1].hint = arena_vprintf(d->arena, fmt, ap);
	va_end(ap);
}

/* The limits of the excerpt around byte @at of a line of @len bytes; a script on a command line is one long line. */
static void window(const char *line, size_t len, size_t at, size_t *from, size_t *to)
{
	enum { LONGEST = 160, BEFORE = 80 };

	*from = 0;
	*to = len;
	if (len <= LONGEST)
		return;
	*from = at > BEFORE ? at - BEFORE : 0;
	*to = *from + LONGEST < len ? *from + LONGEST : len;
	while (*from && ((unsigned char)line[*from] & 0xc0) == 0x80)
		--*from;
	while (*to < len && ((unsigned char)line[*to] & 0xc0) == 0x80)
		++*to;
}

void diag_excerpt(struct strbuf *out, struct src_pos pos)
{
	const char *line;
	size_t len, i, from, to;

	if (!pos.src || !pos.line || !pos.src->len)	/* the file of a #line directive has only a name */
		return;
	line = source_line(pos.src, pos.line, &len);
	window(line, len, pos.col < len ? pos.col : len, &from, &to);
	strbuf_puts(out, from ? "\t..." : "\t");
	for (i = from; i < to; i++)	/* control bytes of a binary file must not reach the terminal */
		strbuf_putc(out, (unsigned char)line[i] < ' ' && line[i] != '\t' ? '?' : line[i]);
	strbuf_puts(out, to < len ? "...\n\t" : "\n\t");
	strbuf_puts(out, from ? "   " : "");
	for (i = from; i + 1 < pos.col && i < len; i++) {
		if (line[i] == '\t')
			strbuf_putc(out, '\t');
		else if (((unsigned char)line[i] & 0xc0) != 0x80)	/* one column per UTF-8 character */
			strbuf_putc(out, ' ');
	}
	strbuf_puts(out, "^\n");
}
