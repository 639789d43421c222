/*
 * Records between the place, which hands them over in the order of its buffers, and the actions, which are carried out in
 * the order of time: what is held for how long, as the option bufpolicy says (DTrace guide, "Buffers and Buffering").
 */
#include "session/private.h"

#include <errno.h>

#include "abi/python.h"
#include "base/now.h"
#include "out/sink.h"

/*
 * Any bytes can stand where a target writes records, and what is none is a loss; from the kernel it is our mistake.
 * 0, or @e.
 */
static int forgive(struct session *s, int e)
{
	if (e != -EINVAL || !s->place->in_target)
		return e;
	__atomic_fetch_add(&place_control(s->place)->drops[ABI_DROP_RECORD], 1, __ATOMIC_RELAXED);
	return 0;
}

static int carry_out(void *session, const void *rec, size_t size, const void *next)
{
	return forgive(session, session_record(session, rec, size, next));
}

/*
 * DTrace guide, "fill Policy": the first record that finds its CPU's buffer full ends the tracing, and it and those
 * behind it are lost.  What END records has room: it is fired when this is over.
 */
static bool finds_full(struct session *s, const struct abi_record *hdr, size_t size)
{
	uint64_t *filled = &s->filled[hdr->cpu % BUF_CPUS];

	if (s->policy != BUF_FILL || s->ended)
		return false;
	*filled += size;
	if (*filled <= (uint64_t)s->opts.v[OPT_bufsize])
		return false;
	if (!s->ending)
		session_set_state(s, ABI_STATE_DRAINING);
	s->ending = true;
	__atomic_fetch_add(&place_control(s->place)->drops[ABI_DROP_RECORD], 1, __ATOMIC_RELAXED);
	return true;
}

/* Records that are held back still end the session at once. */
static bool calls_exit(const struct session *s, const struct abi_record *hdr)
{
	const struct ir_prog *prog = s->conf.prog;
	const struct ir_rec *rec = hdr->rec < prog->nrecs ? prog->recs[hdr->rec] : NULL;

	for (uint32_t i = 0; rec && i < rec->nacts; i++)
		if (rec->acts[i].kind == IR_ACT_EXIT)
			return true;
	return false;
}

static int hold_record(void *session, const void *rec, size_t size)
{
	const struct abi_record *hdr = rec;
	struct session *s = session;
	int e;

	if (hdr->rec >= ABI_REC_CODE && hdr->rec <= ABI_REC_STACK)
		return forgive(s, session_name_record(s, rec, size));
	if (s->policy != BUF_SWITCH && calls_exit(s, hdr))
		s->ending = true;
	if (finds_full(s, hdr, size))
		return 0;
	e = forgive(s, stream_add(&s->stream, rec, size));
	if (!e && s->stream.len > HELD_MAX_BYTES && s->policy == BUF_SWITCH)
		e = -EAGAIN;
	if (!e && s->policy == BUF_RING && s->stream.len > s->held_max) {
		e = stream_keep_last(&s->stream, (size_t)s->opts.v[OPT_bufsize]);
		s->held_max = 2 * s->stream.len + HELD_MAX_BYTES;
	}
	return e;
}

int session_pull(void *session)
{
	struct session *s = session;
	int n = s->place->ops->drain(s->place, hold_record, s);

	return n < 0 && n != -EAGAIN ? n : 0;
}

int session_drain(struct session *s, bool last)
{
	uint64_t until;
	int e, n;

	if (s->policy != BUF_SWITCH && !s->closing)
		return session_pull(s);
	do {
		until = last ? UINT64_MAX : now_ns() - STREAM_SLACK_NS;
		n = s->place->ops->drain(s->place, hold_record, s);
		if (n < 0 && n != -EAGAIN)
			return n;
		aggs_stale(s->aggs);
		e = stream_take(&s->stream, until, carry_out, s);
	} while (!e && n == -EAGAIN && last);
	if (!e)
		e = out_flush(s->conf.out);
	if (!e && s->conf.written)
		s->conf.written(s->conf.message_ctx);
	return e;
}

int session_drain_rest(struct session *s)
{
	int e = session_drain(s, true);

	if (e || s->policy == BUF_SWITCH)
		return e;
	if (s->policy == BUF_RING)
		e = stream_keep_last(&s->stream, (size_t)s->opts.v[OPT_bufsize]);
	s->closing = true;
	return e ? e : session_drain(s, true);
}
