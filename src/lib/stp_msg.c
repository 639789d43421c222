#include "lib/stp_msg.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/strbuf.h"
#include "lang/source.h"

/* " at FILE:3:7"; like SystemTap, " at :3:7" if the previous message named the same file. */
static void put_place(struct strbuf *b, struct stp_msg *how, struct src_pos pos, bool name_it)
{
	if (!pos.src || !pos.line)
		return;
	strbuf_printf(b, " at %s:%u:%u", name_it || how->last != pos.src ? pos.src->name : "", pos.line, pos.col);
	how->last = pos.src;
}

/* @label and the line, and below it a caret under the column; tabs before the caret stay tabs. */
static void put_line(struct strbuf *b, const char *label, struct src_pos pos)
{
	const char *line;
	size_t len, i;

	if (!pos.src || !pos.line)
		return;
	line = source_line(pos.src, pos.line, &len);
	strbuf_puts(b, label);
	for (i = 0; i < len; i++)	/* control bytes of a binary file must not reach the terminal */
		strbuf_putc(b, (unsigned char)line[i] < ' ' && line[i] != '\t' ? '?' : line[i]);
	strbuf_printf(b, "\n%*s", (int)strlen(label), "");
	for (i = 0; i + 1 < pos.col && i < len; i++) {
		if (line[i] == '\t')
			strbuf_putc(b, '\t');
		else if (((unsigned char)line[i] & 0xc0) != 0x80)	/* one column per UTF-8 character */
			strbuf_putc(b, ' ');
	}
	strbuf_puts(b, "^\n");
}

static bool begins(const char *s, const char *with)
{
	return !strncmp(s, with, strlen(with));
}

/* If @text ends with a position in the script of @pos, " at NAME:3:7", store it in @pos.  Returns its length, or 0. */
static size_t place_in(const char *text, struct src_pos *pos)
{
	const char *at = NULL, *next;
	size_t name = pos->src ? strlen(pos->src->name) : 0;

	for (next = text; (next = strstr(next, " at ")); next += 4)
		at = next;
	if (!at || !name || strncmp(at + 4, pos->src->name, name) ||
	    sscanf(at + 4 + name, ":%u:%u", &pos->line, &pos->col) != 2)
		return 0;
	return strlen(at);
}

/* stap's second message.  Without "semantic error: " if it is advice of dtap or the position of a declaration. */
static void put_hint(struct strbuf *b, struct stp_msg *how, const struct diag_msg *m)
{
	struct src_pos pos = m->pos;
	size_t len, end;

	if (!m->hint)
		return;
	if (begins(m->text, "semantic error: ") && !begins(m->hint, "identifier '") && !begins(m->hint, "dtap ") &&
	    !begins(m->hint, "write ") && !begins(m->hint, "use "))
		strbuf_puts(b, "semantic error: ");
	len = strlen(m->hint);
	end = place_in(m->hint, &pos);
	strbuf_add(b, m->hint, len - end);
	if (end || (strstr(m->hint, ": identifier '") && m->hint[len - 1] == '\'')) {
		put_place(b, how, pos, false);
		strbuf_putc(b, '\n');
		put_line(b, "        source: ", pos);
	} else {
		strbuf_putc(b, '\n');
	}
	strbuf_putc(b, '\n');
}

static void put_msg(struct strbuf *b, struct stp_msg *how, const struct diag_msg *m)
{
	bool parse = begins(m->text, "parse error: "), eof = strstr(m->text, "saw: ") && strstr(m->text, " EOF");

	if (how->errtags)
		strbuf_printf(b, "[%s] ", m->tag);
	if (m->level == DIAG_WARNING) {
		strbuf_printf(b, "WARNING: %s", m->text);
		put_place(b, how, m->pos, false);
		strbuf_putc(b, '\n');
		put_line(b, " source: ", m->pos);
		return;
	}
	strbuf_puts(b, m->text);
	if (!eof || how->errtags)
		put_place(b, how, m->pos, parse);
	strbuf_putc(b, '\n');
	if (!eof)
		put_line(b, parse ? "     source: " : "        source: ", m->pos);
	strbuf_putc(b, '\n');
	put_hint(b, how, m);
}

/* The length of @text without the token at its end, as in "unresolved type : identifier 'x'". */
static size_t kind_len(const char *text)
{
	size_t n = strlen(text);

	while (n > 1 && (text[n - 1] != ' ' || text[n - 2] != ':'))
		n--;
	return n > 1 ? n : strlen(text);
}

/* Is there an earlier message that differs only in the token? */
static bool is_similar(const struct diag *d, size_t i)
{
	const struct diag_msg *m = &d->msgs[i];
	size_t n = kind_len(m->text);

	for (size_t k = 0; k < i; k++) {
		const struct diag_msg *o = &d->msgs[k];

		if (o->level == m->level && kind_len(o->text) == n && !strncmp(o->text, m->text, n) &&
		    !strcmp(o->hint ? o->hint : "", m->hint ? m->hint : ""))
			return true;
	}
	return false;
}

void stp_msg_end(const struct stp_msg *m)
{
	unsigned int warnings = m->no_warnings ? 0 : m->similar_warnings;
	struct strbuf b = { 0 };

	if (m->similar_errors)
		strbuf_printf(&b, "Number of similar error messages suppressed: %u.\n", m->similar_errors);
	if (warnings)
		strbuf_printf(&b, "Number of similar warning messages suppressed: %u.\n", warnings);
	if (b.len) {
		strbuf_puts(&b, "Rerun with -v to see them.\n");
		m->print(m->ctx, m->similar_errors ? DIAG_ERROR : DIAG_WARNING, strbuf_str(&b));
	}
	strbuf_fini(&b);
}

/* A warning about the user's own script? */
static bool concerns_user(const struct stp_msg *how, const struct diag_msg *m)
{
	for (size_t i = 0; i < how->nscripts; i++)
		if (how->scripts[i] == m->pos.src)
			return true;
	return !how->nscripts || !m->pos.src;
}

void stp_msg_print(struct stp_msg *how, const struct diag *d)
{
	struct strbuf b = { 0 };

	for (; how->shown < d->n; how->shown++) {
		const struct diag_msg *m = &d->msgs[how->shown];

		if (m->level == DIAG_WARNING) {
			if (!concerns_user(how, m))
				continue;
			how->warnings += strcmp(m->tag, "S_POINT_NEVER") != 0;	/* -W: it is the machine's, not the script's */
			if (how->no_warnings)
				continue;
		}
		if (!how->all && !begins(m->text, "parse error: ") && is_similar(d, how->shown)) {
			if (m->level == DIAG_WARNING)
				how->similar_warnings++;
			else
				how->similar_errors++;
			continue;
		}
		strbuf_clear(&b);
		put_msg(&b, how, m);
		how->print(how->ctx, m->level, strbuf_str(&b));
	}
	strbuf_fini(&b);
}

void stp_msg_warn(struct stp_msg *m, const char *fmt, ...)
{
	struct strbuf b = { 0 };
	va_list ap;

	m->warnings++;
	if (m->no_warnings)
		return;
	strbuf_puts(&b, "WARNING: ");
	va_start(ap, fmt);
	strbuf_vprintf(&b, fmt, ap);
	va_end(ap);
	strbuf_putc(&b, '\n');
	m->print(m->ctx, DIAG_WARNING, strbuf_str(&b));
	strbuf_fini(&b);
}
