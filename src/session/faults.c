/*
 * Reports of faults, warnings and skipped clauses, in the wording of the program's dialect.
 *
 * If the dialect counts them, more than max_errors faults, or more than max_skipped skipped clauses, end the session:
 * then FAILED is fired in place of END, and the status is 1.  The programs themselves stop all others at the fault.
 */
#include "session/private.h"

#include "out/dialect.h"
#include "out/error.h"
#include "out/sink.h"

void session_tell(struct session *s, struct out_sink *text)
{
	s->conf.message(s->conf.message_ctx, out_text(text));
	out_close(text);
}

bool session_failed(const struct session *s)
{
	return out_dialect(s->conf.out)->counts &&
	       ((int64_t)s->faults.n > s->conf.max_errors || (int64_t)s->faults.nskipped > s->conf.max_skipped);
}

static void end_if_failed(struct session *s)
{
	if (!session_failed(s))
		return;
	s->finish.is_due = true;
	s->finish.status = 1;
}

void session_fault(struct session *s, const struct out_fault *f)
{
	const struct dialect *d = out_dialect(s->conf.out);
	struct out_sink text;

	if (d->counts) {
		s->faults.n++;
		end_if_failed(s);
	}
	if (s->conf.silent_errors)
		return;
	out_open_mem(&text);
	d->fault(&text, s->conf.command, f);
	session_tell(s, &text);
}

void session_say_warning(struct session *s, const char *warning)
{
	const struct dialect *d = out_dialect(s->conf.out);
	struct out_sink text;

	if (!d->warn)
		return;
	out_open_mem(&text);
	d->warn(&text, warning);
	session_tell(s, &text);
}

/* Count @n skipped clauses, which are reported at the end, or at once if there are too many. */
static void left_out(struct session *s, uint64_t n)
{
	bool ended = s->finish.is_due;
	struct out_sink text;

	s->faults.nskipped += n;
	if (!session_failed(s) || ended)
		return;
	end_if_failed(s);
	out_open_mem(&text);
	out_dialect(s->conf.out)->too_many(&text);
	session_tell(s, &text);
}

void session_lost(struct session *s, unsigned int kind, uint64_t n)
{
	const struct dialect *d = out_dialect(s->conf.out);
	struct out_sink text;

	if (s->conf.lost)
		s->conf.lost(s->conf.message_ctx, out_drop_name(kind), n);
	if (d->counts && (kind == ABI_DROP_LOCK || kind == ABI_DROP_BUSY)) {
		left_out(s, n);
		return;
	}
	out_open_mem(&text);
	d->lost(&text, s->conf.command, kind, n, s->opts.v[OPT_droptags]);
	session_tell(s, &text);
}

void session_summary(struct session *s)
{
	const struct dialect *d = out_dialect(s->conf.out);
	struct out_sink text;

	if (!d->summary || !(s->faults.n || s->faults.nskipped))
		return;
	out_open_mem(&text);
	d->summary(&text, s->faults.n, s->faults.nskipped);
	session_tell(s, &text);
}
