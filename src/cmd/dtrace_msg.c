#include "cmd/dtrace_msg.h"

#include <stdio.h>

#include "base/strbuf.h"
#include "cmd/dtrace_opts.h"
#include "lang/diag.h"

/* The program that @src is the text of, or NULL for text from an included file. */
static const struct dtrace_prog *prog_of(const struct dtrace_opts *o, const struct source *const *sources,
					 const struct source *src)
{
	size_t i;

	for (i = 0; i < o->nprogs; i++)
		if (sources[i] == src)
			return &o->progs[i];
	return NULL;
}

/* How DTrace names what it could not compile: program @p, or NULL for an included file. */
static void say_where(const struct diag_msg *m, const struct dtrace_prog *p, bool tags, struct strbuf *b)
{
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
	if (tags)
		strbuf_printf(b, "[%s] ", m->tag);
	if (m->pos.line && script)
		strbuf_printf(b, "line %u: column %u: ", m->pos.line, m->pos.col);
}

bool dtrace_report(const struct diag *diag, const struct dtrace_opts *o, const struct source *const *sources, bool tags)
{
	struct strbuf b = { 0 };
	size_t i;

	for (i = 0; i < diag->n; i++) {
		const struct diag_msg *m = &diag->msgs[i];

		strbuf_clear(&b);
		say_where(m, m->pos.src ? prog_of(o, sources, m->pos.src) : NULL, tags, &b);
		strbuf_puts(&b, m->text);
		fprintf(stderr, "dtrace: %s\n", strbuf_str(&b));
		strbuf_clear(&b);
		diag_excerpt(&b, m->pos);
		fputs(strbuf_str(&b), stderr);
		if (m->hint)
			fprintf(stderr, "\t%s\n", m->hint);
	}
	if (diag->errors > DIAG_MAX_ERRORS)
		fprintf(stderr, "dtrace: %u more errors\n", diag->errors - DIAG_MAX_ERRORS);
	strbuf_fini(&b);
	return diag->errors > 0;
}
