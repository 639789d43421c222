#include "cmd/dtrace_msg.h"

#include <stdio.h>

#include "base/strbuf.h"
#include "cmd/dtrace_opts.h"
#include "lang/diag.h"

bool dtrace_print(const struct diag *diag, dtrace_where_fn *where, void *ctx)
{
	struct strbuf b = { 0 };
	size_t i;

	for (i = 0; i < diag->n; i++) {
		const struct diag_msg *m = &diag->msgs[i];

		strbuf_clear(&b);
		where(ctx, m, &b);
		strbuf_printf(&b, "%s\n", m->text);
		diag_excerpt(&b, m->pos);
		fprintf(stderr, "dtrace: %s", strbuf_str(&b));
		if (m->hint)
			fprintf(stderr, "\t%s\n", m->hint);
	}
	if (diag->errors > DIAG_MAX_ERRORS)
		fprintf(stderr, "dtrace: %u more errors\n", diag->errors - DIAG_MAX_ERRORS);
	strbuf_fini(&b);
	return diag->errors > 0;
}

/* --- a trace script ----------------------------------------------------------------------------------- */

struct script {
	const struct dtrace_opts *opts;
	const struct source *const *sources;
	bool tags;
};

/* The program that @src is the text of, or NULL for text from an included file. */
static const struct dtrace_prog *prog_of(const struct script *s, const struct source *src)
{
	size_t i;

	for (i = 0; src && i < s->opts->nprogs; i++)
		if (s->sources[i] == src)
			return &s->opts->progs[i];
	return NULL;
}

/* How DTrace names what it could not compile. */
static void say_where(void *ctx, const struct diag_msg *m, struct strbuf *b)
{
	const struct script *s = ctx;
	const struct dtrace_prog *p = prog_of(s, m->pos.src);
	bool script = !p || p->opt == 's';

	if (m->level == DIAG_WARNING)
		strbuf_puts(b, "warning: ");
	else if (!m->pos.src)
		;	/* about no script in particular: a macro argument that none uses */
	else if (script)
		strbuf_puts(b, "failed to compile script ");
	else
		strbuf_puts(b, "invalid probe specifier ");
	if (m->pos.src)
		strbuf_printf(b, "%s: ", m->pos.src->name);
	if (s->tags)
		strbuf_printf(b, "[%s] ", m->tag);
	if (m->pos.line && script)
		strbuf_printf(b, "line %u: column %u: ", m->pos.line, m->pos.col);
}

bool dtrace_report(const struct diag *diag, const struct dtrace_opts *o, const struct source *const *sources, bool tags)
{
	struct script s = { o, sources, tags };

	return dtrace_print(diag, say_where, &s);
}
