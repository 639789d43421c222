#include "cmd/ready/perfetto.h"

#include <inttypes.h>
#include <string.h>

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

/* The track of a thread, or with tid 0 of its process.  The first call describes it in the trace. */
static uint64_t track_of(struct perfetto *p, uint64_t pid, uint64_t tid)
{
	uint64_t key[2] = { pid, tid }, parent = tid ? track_of(p, pid, 0) : 0;
	uint64_t uuid = (uint64_t)(uintptr_t)bytemap_get(&p->tracks, (const char *)key, sizeof(key));

	if (uuid || bytemap_set(&p->tracks, (const char *)key, sizeof(key), (void *)(uintptr_t)(p->ntracks + 1)))
		return uuid;
	uuid = ++p->ntracks;
	proto_number(&p->message, TRACK_UUID, uuid);
	if (parent)
		proto_number(&p->message, TRACK_PARENT, parent);
	proto_number(&p->inner, tid ? THREAD_PID : PROCESS_PID, pid);
	if (tid)
		proto_number(&p->inner, THREAD_TID, tid);
	proto_message(&p->message, tid ? TRACK_THREAD : TRACK_PROCESS, &p->inner);
	put_packet(p, PACKET_TRACK, NULL);
	return uuid;
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
	uint64_t track = track_of(p, e.pid, e.tid), end_ns = e.time_ns + (uint64_t)e.took_ns;

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
	strbuf_fini(&p->file);
	strbuf_fini(&p->packet);
	strbuf_fini(&p->message);
	strbuf_fini(&p->inner);
	bytemap_fini(&p->tracks);
}
