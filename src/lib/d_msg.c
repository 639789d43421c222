#include "lib/d_msg.h"

#include <string.h>

#include "base/strbuf.h"
#include "lang/diag.h"
#include "lib/lib.h"

/* Is @pos the start of a description given by itself, which the message has quoted whole already? */
static bool is_shown(const struct src_pos *pos)
{
	return pos->src && pos->line == 1 && pos->col == 1 && !strpbrk(pos->src->name, " {\n") &&
	       strlen(pos->src->name) == pos->src->len && !memcmp(pos->src->name, pos->src->text, pos->src->len);
}

void d_msg_text(const struct diag *diag, d_where_fn *where, void *ctx, struct strbuf *out)
{
	for (size_t i = 0; i < diag->n; i++) {
		const struct diag_msg *m = &diag->msgs[i];

		strbuf_puts(out, "dtrace: ");
		where(ctx, m, out);
		strbuf_printf(out, "%s\n", m->text);
		if (!is_shown(&m->pos))
			diag_excerpt(out, m->pos);
		if (m->hint)
			strbuf_printf(out, "\t%s\n", m->hint);
	}
	if (diag->errors > diag->max)
		strbuf_printf(out, "dtrace: %u more errors\n", diag->errors - diag->max);
}

/* --- a trace script ----------------------------------------------------------------------------------- */

/* The script with the text @src, or NULL for text from an included file. */
static const struct lib_script *script_of(const struct dtap *t, const struct source *src)
{
	for (size_t i = 0; src && i < t->nscripts; i++)
		if (t->scripts[i].src == src)
			return &t->scripts[i];
	return NULL;
}

/* The start of a text from the command line; the excerpt below the message shows the position. */
static void put_start(const char *text, struct strbuf *b)
{
	enum { ENOUGH = 60 };
	size_t n = strcspn(text, "\n"), end = n;

	if (n > ENOUGH)
		for (end = ENOUGH; ((unsigned char)text[end] & 0xc0) == 0x80; end--)
			;
	strbuf_printf(b, "%.*s%s", (int)end, text, text[end] ? "..." : "");
}

/* The start of a message, as DTrace words it. */
static void say_where(void *ctx, const struct diag_msg *m, struct strbuf *b)
{
	const struct dtap *t = ctx;
	const struct lib_script *s = script_of(t, m->pos.src);
	bool script = !s || lib_is_script(s);

	if (m->level == DIAG_WARNING)
		strbuf_puts(b, "warning: ");
	else if (!m->pos.src)
		;	/* about no script in particular, for example an unused macro argument */
	else if (script)
		strbuf_puts(b, "failed to compile script ");
	else
		strbuf_puts(b, "invalid probe specifier ");
	if (m->pos.src && !script)
		put_start(m->pos.src->name, b);
	else if (m->pos.src)
		strbuf_puts(b, m->pos.src->name);
	strbuf_puts(b, m->pos.src ? ": " : "");
	if (t->conf.tags || t->set.v[OPT_errtags])
		strbuf_printf(b, "[%s] ", m->tag);
	if (m->pos.line && script)
		strbuf_printf(b, "line %u: column %u: ", m->pos.line, m->pos.col);
}

bool d_msg_report(struct dtap *t, const struct diag *diag)
{
	struct strbuf b = { 0 };

	d_msg_text(diag, say_where, t, &b);
	if (b.len)
		lib_message(t, diag->errors ? DTAP_ERROR : DTAP_WARNING, strbuf_str(&b));
	strbuf_fini(&b);
	return diag->errors > 0;
}
