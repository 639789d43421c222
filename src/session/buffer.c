/*
 * Records between the place, which delivers them in the order of its buffers, and the actions, which run in the order
 * of time.  The option bufpolicy decides what is held for how long (DTrace guide, "Buffers and Buffering").
 */
#include "session/private.h"

#include <errno.h>

#include "abi/python.h"
#include "base/now.h"
#include "out/sink.h"

/* An invalid record is skipped if a target can have written it; from the kernel it is a bug in dtap. */
static int forgive(struct session *s, int e)
{
	if (e != -EINVAL || !s->place->in_target)
		return e;
	s->losses.nbad++;
	return 0;
}

static int carry_out(void *session, const struct record *rec, const struct record *next)
{
	return forgive(session, session_record(session, rec, next));
}

/*
 * DTrace guide, "fill Policy": the first record that finds its CPU's buffer full ends the tracing; it and later ones
 * are lost.  END's records have room: END is fired afterwards.
 */
static bool finds_full(struct session *s, const struct abi_record *hdr, size_t size)
{
	uint64_t *filled = &s->held.filled[hdr->cpu % BUF_CPUS];

	if (s->held.policy != BUF_FILL || s->finish.end_fires)
		return false;
	*filled += size;
	if (*filled <= (uint64_t)s->opts.v[OPT_bufsize])
		return false;
	if (!s->finish.is_due)
		session_set_state(s, ABI_STATE_DRAINING);
	s->finish.is_due = true;
	s->losses.nfull++;
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

static int hold_record(void *session, const struct record *rec)
{
	const struct abi_record *hdr = rec->hdr;
	struct session *s = session;
	int e;

	s->spending.has_records = true;
	if (hdr->rec >= ABI_REC_CODE && hdr->rec <= ABI_REC_STACK)
		return forgive(s, session_name_record(s, rec));
	if (calls_exit(s, hdr))
		s->finish.is_due |= s->held.policy != BUF_SWITCH || s->place->in_target;
	if (finds_full(s, hdr, rec->size))
		return 0;
	e = forgive(s, stream_add(&s->held.stream, rec));
	if (!e && s->held.stream.len > HELD_MAX_BYTES && s->held.policy == BUF_SWITCH)
		e = -EAGAIN;
	if (!e && s->held.policy == BUF_RING && s->held.stream.len > s->held.max) {
		e = stream_keep_last(&s->held.stream, (size_t)s->opts.v[OPT_bufsize]);
		s->held.max = 2 * s->held.stream.len + HELD_MAX_BYTES;
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

	if (s->held.policy != BUF_SWITCH && !s->held.released)
		return session_pull(s);
	do {
		until = last ? UINT64_MAX : now_ns() - STREAM_SLACK_NS;
		n = s->place->ops->drain(s->place, hold_record, s);
		if (n < 0 && n != -EAGAIN)
			return n;
		aggs_stale(s->aggs);
		e = stream_take(&s->held.stream, until, carry_out, s);
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

	if (e || s->held.policy == BUF_SWITCH)
		return e;
	if (s->held.policy == BUF_RING)
		e = stream_keep_last(&s->held.stream, (size_t)s->opts.v[OPT_bufsize]);
	s->held.released = true;
	return e ? e : session_drain(s, true);
}
