/*
 * What a SystemTap session says of itself: faults, warnings, handlers that were left out, in stap's words.
 *
 * More errors than MAXERRORS end the session, and more handlers left out than MAXSKIPPED do: then probe error runs
 * in place of probe end, and the status is 1.  The programs themselves shut the gate at the error.
 *
 * Man page stap(1), "SAFETY AND SECURITY"; SystemTap's messages.
 */
#include "session/private.h"

#include <errno.h>
#include <inttypes.h>

#include "abi/stat.h"
#include "base/strbuf.h"
#include "out/hist_stp.h"
#include "out/sink.h"
#include "stp/stp.h"

static const char *fault_format(uint64_t kind)
{
	switch (kind) {
#define STP_FAULT(kind_, text) case ABI_FAULT_##kind_: return text;
#include "stp/faults.def"
#undef STP_FAULT
	default:
		return NULL;
	}
}

static void say(struct session *s, const struct strbuf *b)
{
	s->conf.message(s->conf.message_ctx, strbuf_str(b));
}

/* The conversion that a text of faults.def may have, %d or %x, stands for @value. */
static void put_fault(struct strbuf *b, const char *format, uint64_t value)
{
	for (; *format; format++) {
		if (format[0] == '%' && format[1] == 'x') {
			strbuf_printf(b, "%" PRIx64, value);
			format++;
		} else if (format[0] == '%' && format[1] == 'd') {
			strbuf_printf(b, "%" PRId64, (int64_t)value);
			format++;
		} else {
			strbuf_putc(b, *format);
		}
	}
}

bool session_stap_failed(const struct session *s)
{
	return s->conf.stp && ((int64_t)s->nfaults > s->conf.max_errors || (int64_t)s->nskipped > s->conf.max_skipped);
}

/* Fields: kind, value, number of the place, text. */
void session_stap_error(struct session *s, const struct ir_value *v)
{
	const struct stp_near *near = v[2].i >= 0 && v[2].i < (int64_t)s->conf.stp->nnears ?
					      &s->conf.stp->nears[v[2].i] : NULL;
	const char *format = near && near->text ? near->text : fault_format((uint64_t)v[0].i);
	struct strbuf b = { 0 };

	s->nfaults++;
	if (session_stap_failed(s)) {
		s->ending = true;
		s->status = 1;
	}
	if (s->conf.silent_errors)
		return;
	strbuf_puts(&b, "ERROR: ");
	if (v[0].i == ABI_FAULT_ERROR)
		strbuf_puts(&b, v[3].s);
	else if (format)
		put_fault(&b, format, (uint64_t)v[1].i);
	else
		strbuf_printf(&b, "fault %" PRId64 " at 0x%" PRIx64, v[0].i, (uint64_t)v[1].i);
	if (near && near->what && *near->what) {
		strbuf_printf(&b, " near %s", near->what);
		if (near->pos.src)
			strbuf_printf(&b, " at %s:%u:%u", near->pos.src->name, near->pos.line, near->pos.col);
	}
	strbuf_putc(&b, '\n');
	say(s, &b);
	strbuf_fini(&b);
}

int session_stap_hist(struct session *s, const struct ir_map *m, const uint64_t *words, bool newline)
{
	struct out_stp_hist h = {
		.linear = m->stat == IR_STAT_LINEAR,
		.start = m->linear[0], .interval = m->linear[2],
		.n = ir_stat_words(m) - ABI_STAT_BUCKETS, .counts = words + ABI_STAT_BUCKETS, .elision = OUT_STP_ELISION,
	};

	if (m->stat != IR_STAT_LOG && m->stat != IR_STAT_LINEAR)
		return -EINVAL;
	out_stp_hist(s->conf.out, &h);
	if (newline)
		out_putc(s->conf.out, '\n');
	return 0;
}

void session_stap_warn(struct session *s, const char *text)
{
	struct strbuf b = { 0 };

	strbuf_printf(&b, "WARNING: %s\n", text);
	say(s, &b);
	strbuf_fini(&b);
}

void session_stap_lost(struct session *s, enum abi_drop kind, uint64_t n)
{
	struct strbuf b = { 0 };

	switch (kind) {
	case ABI_DROP_RECORD:
		strbuf_printf(&b, "WARNING: There were %" PRIu64 " transport failures.\n", n);
		break;
	case ABI_DROP_LOCK:
	case ABI_DROP_BUSY:
		s->nskipped += n;
		if (!session_stap_failed(s) || s->ending)
			break;
		s->ending = true;
		s->status = 1;
		strbuf_puts(&b, "ERROR: Skipped too many probes, check MAXSKIPPED or try again with stap -t for more "
				"details.\n");
		break;
	case ABI_DROP_ITER:
		strbuf_printf(&b, "WARNING: %" PRIu64 " foreach loops had no memory to sort in and did nothing.\n", n);
		break;
	default:
		strbuf_printf(&b, "WARNING: %" PRIu64 " array elements were lost: there was no room.\n", n);
	}
	say(s, &b);
	strbuf_fini(&b);
}

void session_stap_summary(struct session *s)
{
	struct strbuf b = { 0 };

	if (s->nfaults || s->nskipped)
		strbuf_printf(&b, "WARNING: Number of errors: %" PRIu64 ", skipped probes: %" PRIu64 "\n", s->nfaults,
			      s->nskipped);
	say(s, &b);
	strbuf_fini(&b);
}
