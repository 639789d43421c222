#include "cmd/ready/perfetto.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "base/strbuf.h"
#include "cmd/ready/cell.h"
#include "cmd/ready/proto.h"

/* Fields of protos/perfetto/trace: trace_packet.proto, track_event/. */
enum { TRACE_PACKET = 1 };
enum { PACKET_TIME = 8, PACKET_SEQUENCE = 10, PACKET_EVENT, PACKET_FLAGS = 13, PACKET_TRACK = 60 };
enum { EVENT_ANNOTATION = 4, EVENT_TYPE = 9, EVENT_TRACK = 11, EVENT_NAME = 23 };
enum { TRACK_UUID = 1, TRACK_NAME, TRACK_PROCESS, TRACK_THREAD, TRACK_PARENT };
enum { PROCESS_PID = 1 };
enum { THREAD_PID = 1, THREAD_TID };
enum { NOTE_INT = 4, NOTE_TEXT = 6, NOTE_NAME = 10 };
enum { SEQUENCE = 1, FIRST_OF_SEQUENCE = 1 };
enum event_type { SLICE_BEGIN = 1, SLICE_END = 2, INSTANT = 3 };

/* A task that ran in a thread from @began_ns to @ended_ns. */
struct step {
	uint64_t track, began_ns, ended_ns;
};

struct perfetto_thread {
	struct step *steps, last;	/* those that have not ended, outermost first: an eager task's is in another's */
	size_t nsteps, steps_cap;
	uint64_t *slices;		/* the tracks of those that have begun */
	size_t nslices, slices_cap;
};

/* The parts of a line that become fields of the event. */
struct event {
	uint64_t time_ns, pid, tid;
	int64_t took_ns;		/* below 0: none */
	const char *name;
	enum event_type type;
};

static void put_packet(struct perfetto *p, unsigned int field, const uint64_t *time_ns)
{
	proto_message(&p->packet, field, &p->message);
	if (time_ns)
		proto_number(&p->packet, PACKET_TIME, *time_ns);
	proto_number(&p->packet, PACKET_SEQUENCE, SEQUENCE);
	if (!p->begun)	/* without the flag readers assume that the start of the sequence was lost */
		proto_number(&p->packet, PACKET_FLAGS, FIRST_OF_SEQUENCE);
	p->begun = true;
	proto_message(&p->file, TRACE_PACKET, &p->packet);
}

/* What a track's descriptor says of the process or thread that it is of. */
static void put_owner(struct perfetto *p, uint64_t pid, uint64_t tid)
{
	proto_number(&p->inner, tid ? THREAD_PID : PROCESS_PID, pid);
	if (tid)
		proto_number(&p->inner, THREAD_TID, tid);
	proto_message(&p->message, tid ? TRACK_THREAD : TRACK_PROCESS, &p->inner);
}

/*
 * The track of a task, or with task "" of a thread, or with tid 0, too, of its process.  The first call describes it in the
 * trace, after the one that it is below.
 */
static uint64_t track_of(struct perfetto *p, uint64_t pid, uint64_t tid, const char *task)
{
	uint64_t parent = *task ? track_of(p, pid, tid, "") : tid ? track_of(p, pid, 0, "") : 0, uuid;
	struct strbuf key = { 0 };

	strbuf_add(&key, (const char *)&pid, sizeof(pid));
	strbuf_add(&key, (const char *)&tid, sizeof(tid));
	strbuf_puts(&key, task);
	uuid = (uint64_t)(uintptr_t)bytemap_get(&p->tracks, key.s, key.len);
	if (uuid || bytemap_set(&p->tracks, key.s, key.len, (void *)(uintptr_t)(p->ntracks + 1)))
		goto out;
	uuid = ++p->ntracks;
	proto_number(&p->message, TRACK_UUID, uuid);
	if (*task)
		proto_text(&p->message, TRACK_NAME, task);
	if (parent)
		proto_number(&p->message, TRACK_PARENT, parent);
	if (!*task)
		put_owner(p, pid, tid);
	put_packet(p, PACKET_TRACK, NULL);
out:
	strbuf_fini(&key);
	return uuid;
}

/* NULL: out of memory. */
static struct perfetto_thread *thread_of(struct perfetto *p, uint64_t pid, uint64_t tid)
{
	uint64_t key[2] = { pid, tid };
	struct perfetto_thread *t = bytemap_get(&p->threads, (const char *)key, sizeof(key));

	if (t)
		return t;
	t = calloc(1, sizeof(*t));
	if (t && bytemap_set(&p->threads, (const char *)key, sizeof(key), t)) {
		free(t);
		t = NULL;
	}
	return t;
}

/* The track of the task that ran at that time, or 0.  A coroutine's return may come after the end of its step. */
static uint64_t task_at(const struct perfetto_thread *t, uint64_t time_ns)
{
	const struct step *open = t->nsteps ? &t->steps[t->nsteps - 1] : NULL;

	if (t->last.track && t->last.began_ns <= time_ns && time_ns <= t->last.ended_ns)
		return t->last.track;
	return open && open->began_ns <= time_ns ? open->track : 0;
}

/* The track of an event.  A slice ends in the track in which it has begun. */
static uint64_t track_at(struct perfetto *p, const struct event *e)
{
	struct perfetto_thread *t = thread_of(p, e->pid, e->tid);
	uint64_t track = t && e->type == SLICE_END && t->nslices ? t->slices[--t->nslices] : t ? task_at(t, e->time_ns) : 0;

	track = track ? track : track_of(p, e->pid, e->tid, "");
	if (t && e->type == SLICE_BEGIN && grow_array(&t->slices, &t->slices_cap, t->nslices, sizeof(*t->slices)))
		t->slices[t->nslices++] = track;
	return track;
}

static uint64_t since_start(const struct ready_run *r, uint64_t time_ns)
{
	return time_ns - r->began_ns;
}

void perfetto_step(struct perfetto *p, const struct ready_run *r, const struct dtap_value *v, bool begins)
{
	uint64_t time_ns = since_start(r, v[0].u);
	struct perfetto_thread *t = thread_of(p, v[1].u, v[2].u);

	if (t && begins && grow_array(&t->steps, &t->steps_cap, t->nsteps, sizeof(*t->steps))) {
		t->steps[t->nsteps++] = (struct step){ track_of(p, v[1].u, v[2].u, v[3].s), time_ns, UINT64_MAX };
	} else if (t && !begins && t->nsteps) {
		t->last = t->steps[--t->nsteps];
		t->last.ended_ns = time_ns;
	}
}

static void put_note(struct perfetto *p, const struct ready_column *c, const struct dtap_value *v)
{
	proto_text(&p->inner, NOTE_NAME, c->name);
	if (v->type == DTAP_STRING)
		proto_text(&p->inner, NOTE_TEXT, v->s);
	else
		proto_number(&p->inner, NOTE_INT, v->u);
	proto_message(&p->message, EVENT_ANNOTATION, &p->inner);
}

/* The event's fields: a clock, the first two pids (process, thread), an arrow, a time, the first text. */
static struct event read_event(const struct ready_head *h, const struct dtap_value *v, bool *is_note)
{
	struct event e = { .took_ns = -1, .name = NULL, .type = INSTANT };
	unsigned int pids = 0;

	for (size_t i = 0; i < h->ncolumns; i++) {
		enum ready_kind kind = h->columns[i].kind;

		is_note[i] = false;
		if (kind == READY_CLOCK)
			e.time_ns = v[i].u;
		else if (kind == READY_PID && pids < 2)
			*(pids++ ? &e.tid : &e.pid) = v[i].u;
		else if (kind == READY_ARROW)
			e.type = v[i].i ? SLICE_BEGIN : SLICE_END;
		else if (kind == READY_TIME)
			e.took_ns = v[i].i;
		else if (kind == READY_TEXT && v[i].type == DTAP_STRING && !e.name)
			e.name = v[i].s;
		else
			is_note[i] = kind != READY_INDENT;
	}
	return e;
}

void perfetto_event(struct perfetto *p, struct ready_run *r, const struct dtap_value *v)
{
	const struct ready_head *h = &r->req->head;
	bool is_note[READY_COLUMNS];
	struct event e = read_event(h, v, is_note);
	bool whole = e.type == INSTANT && e.took_ns >= 0;
	uint64_t track = track_at(p, &e), end_ns = e.time_ns + (uint64_t)e.took_ns;

	proto_number(&p->message, EVENT_TYPE, whole ? SLICE_BEGIN : e.type);
	proto_number(&p->message, EVENT_TRACK, track);
	if (e.type != SLICE_END && e.name)
		proto_text(&p->message, EVENT_NAME, e.name);
	for (size_t i = 0; i < h->ncolumns; i++)
		if (is_note[i])
			put_note(p, &h->columns[i], &v[i]);
	put_packet(p, PACKET_EVENT, &e.time_ns);
	if (whole) {
		proto_number(&p->message, EVENT_TYPE, SLICE_END);
		proto_number(&p->message, EVENT_TRACK, track);
		put_packet(p, PACKET_EVENT, &end_ns);
	}
	fwrite(strbuf_str(&p->file), 1, p->file.len, r->out);
	strbuf_clear(&p->file);
}

void perfetto_fini(struct perfetto *p)
{
	struct perfetto_thread *t;

	for (size_t pos = 0; (t = bytemap_next(&p->threads, &pos)); free(t)) {
		free(t->steps);
		free(t->slices);
	}
	bytemap_fini(&p->threads);
	strbuf_fini(&p->file);
	strbuf_fini(&p->packet);
	strbuf_fini(&p->message);
	strbuf_fini(&p->inner);
	bytemap_fini(&p->tracks);
}
