/*
 * A segment that other processes write to as they like: whatever they do, the tracer's reader hands out private bytes of
 * sound sizes and times, its other functions touch nothing outside, and the next process to take a lane goes on with it.
 * Read are records, lanes, tables, arrays and the control block (src/vm); what the session makes of them is session_fuzz.c's.
 *
 * The bytes are commands: an operation and its lane, then what it takes.  There are two segments, the second of which has
 * rings so large that their memory is given back and made ahead.  In front of the data and behind it there is no memory.
 * The maps stay from input to input, what an input wrote is cleared.  No system call is made: time, signals and memory for
 * rings are this file's (--wrap, meson.build).
 */
#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "../unit/vm/segment.h"
#include "vm/reader_priv.h"
#include "vm/ring.h"
#include "vm/table.h"

enum { GUARD = 4096, RECORD_MAX = 2048, OPERATIONS = 48, DIRTY = 2 * OPERATIONS, LARGE_RING = 16 << 20, FROM_NS = 1000 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A segment, its reader, and what was written to since it was as new. */
static struct world {
	struct segment seg;
	struct shm shm;
	struct reader *reader;
	bool tables[SEG_LANES], shared;
	struct { uint8_t *at; size_t n; } dirty[DIRTY];
	unsigned int ndirty;
} worlds[2], *w;

static void enlarge(struct segment *s)
{
	struct abi_image *h = segment_header(s);

	segment_map(s, SEG_OUT)->max_entries = LARGE_RING;
	segment_map(s, SEG_OUT)->size = LARGE_RING;
	h->lane_size = segment_map(s, SEG_OUT)->off + LARGE_RING;
	h->data_size = s->data_size = h->lanes_off + SEG_LANES * h->lane_size;
}

/* The segment's data with guards.  The reader believes in a file whose memory it can give back. */
static void make(struct world *at, bool large)
{
	struct segment *s = &at->seg;
	const char *why;
	uint8_t *data;

	segment_make(s);
	munmap(s->data, s->data_size);
	if (large)
		enlarge(s);
	data = mmap(NULL, s->data_size + 2 * GUARD, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (data == MAP_FAILED || mprotect(data + GUARD, s->data_size, PROT_READ | PROT_WRITE))
		abort();
	s->data = data + GUARD;
	if (shm_open_segment(s->image, s->image_size, s->data, s->data_size, &at->shm, &why) ||
	    reader_new(&at->shm, 0, RECORD_MAX, &at->reader))
		abort();
}

/* --- the system ----------------------------------------------------------------------------------------- */

static bool is_on, makes_run;
static uint64_t now_ns;
static union { struct shm_run run; uint8_t bytes[1 << 20]; } memory[2];

#define REAL(RETURN, NAME, ...) RETURN __real_##NAME(__VA_ARGS__); RETURN __wrap_##NAME(__VA_ARGS__)

REAL(void *, calloc, size_t, size_t);
REAL(void, free, void *);
REAL(int, clock_gettime, clockid_t, struct timespec *);
REAL(int, kill, pid_t, int);
REAL(int, fallocate64, int, int, off_t, off_t);
REAL(long, syscall, long, long, long, long, long, long, long);

int __wrap_clock_gettime(clockid_t clock, struct timespec *ret)
{
	if (!is_on)
		return __real_clock_gettime(clock, ret);
	*ret = (struct timespec){ (time_t)(now_ns / 1000000000), (long)(now_ns % 1000000000) };
	return 0;
}

/* Every second process has ended. */
int __wrap_kill(pid_t pid, int sig)
{
	if (!is_on)
		return __real_kill(pid, sig);
	if (sig)
		abort();
	errno = ESRCH;
	return pid % 2 ? -1 : 0;
}

/* Bytes @off to @off + @n of the data are pages of one lane's ring. */
static void is_of_ring(uint64_t off, uint64_t n)
{
	const struct shm_map *out = &w->shm.maps[SEG_OUT];
	uint64_t at = (off - w->shm.lanes_off) % w->shm.lane_size;

	if (off < w->shm.lanes_off || off >= w->seg.data_size || at < out->off || n > out->size || at - out->off > out->size - n ||
	    off % GUARD || n % GUARD || !n)
		__builtin_trap();
}

int __wrap_fallocate64(int fd, int mode, off_t off, off_t n)
{
	if (!is_on)
		return __real_fallocate64(fd, mode, off, n);
	is_of_ring((uint64_t)off, (uint64_t)n);
	return 0;
}

/* To make memory, or to ask for the thread's number.  Arguments that were not given are not looked at. */
long __wrap_syscall(long number, long a1, long a2, long a3, long a4, long a5, long a6)
{
	if (!is_on)
		return __real_syscall(number, a1, a2, a3, a4, a5, a6);
	if (number == SYS_madvise) {
		is_of_ring((uint64_t)(a1 - (long)(uintptr_t)w->seg.data), (uint64_t)a2);
		return now_ns / 1000000000 % 2 ? -1 : 0;
	}
	if (number != SYS_gettid)
		abort();
	return 77;
}

/* What a run remembers is a megabyte, which nobody writes to here. */
void *__wrap_calloc(size_t n, size_t size)
{
	if (!makes_run || n * size > sizeof(*memory))
		return __real_calloc(n, size);
	return n == SHM_CACHED ? &memory[0] : &memory[1];
}

void __wrap_free(void *at)
{
	if (at != &memory[0] && at != &memory[1])
		__real_free(at);
}

/* --- what comes out ------------------------------------------------------------------------------------ */

static uint8_t sum;

static void is_private(const void *at, size_t n)
{
	const uint8_t *p = at;

	if (p + n > w->seg.data && p < w->seg.data + w->seg.data_size)
		__builtin_trap();
	for (size_t k = 0; k < n; k++)
		sum = (uint8_t)(sum + p[k]);
}

static int take_record(void *ctx, const struct record *rec)
{
	int *answers = ctx;

	if (rec->size < sizeof(*rec->hdr) || rec->size > RECORD_MAX || rec->hdr->size < sizeof(*rec->hdr) ||
	    rec->hdr->size > rec->size || (uintptr_t)rec->hdr % 8 || rec->hdr->time_ns < FROM_NS ||
	    rec->hdr->time_ns > now_ns + READER_AHEAD_NS)
		__builtin_trap();
	is_private(rec->hdr, rec->size);
	return --*answers ? 0 : -11;
}

static uint32_t of_map;

static void take_element(void *ctx, const void *key, const void *value)
{
	unsigned int *n = ctx;

	is_private(key, w->shm.maps[of_map].key_size);
	is_private(value, w->shm.maps[of_map].value_size);
	if (++*n > SEG_LANES * SEG_ENTRIES)
		__builtin_trap();
}

/* --- commands ------------------------------------------------------------------------------------------- */

struct input {
	const uint8_t *at;
	size_t left;
};

static uint32_t number(struct input *in, size_t bytes)
{
	uint32_t v = 0;

	if (bytes > in->left)
		bytes = in->left;
	memcpy(&v, in->at, bytes);
	in->at += bytes;
	in->left -= bytes;
	return v;
}

static void taint(uint8_t *at, size_t n)
{
	w->dirty[w->ndirty].at = at;
	w->dirty[w->ndirty++].n = n;
}

/* Where it hurts: headers, tables' headers and indexes, elements, the ring; or anywhere.  Eight bytes can be written there. */
static uint8_t *somewhere(struct input *in)
{
	uint32_t what = number(in, 1), off = number(in, 2), n = what / 8 % SEG_LANES;
	const struct shm_map *own = &w->shm.maps[SEG_LANE_HASH], *shared = &w->shm.maps[SEG_SHARED], *out = &w->shm.maps[SEG_OUT];
	uint8_t *data = w->seg.data, *lane = shm_lane(&w->shm, n), *at;

	switch (what % 8) {
	case 0:
		at = data + off % sizeof(struct abi_data);
		break;
	case 1:
		return lane + off % sizeof(struct abi_lane);
	case 2:
		at = lane + own->off + off % own->elems_off;
		break;
	case 3:
		at = lane + own->off + own->elems_off + off % (SEG_ENTRIES * own->stride);
		break;
	case 4:
		at = data + shared->off + off % shared->elems_off;
		break;
	case 5:
		at = data + shared->off + shared->elems_off + off % (SEG_ENTRIES * shared->stride);
		break;
	case 6:
		at = lane + out->off + off % out->max_entries;
		break;
	default:
		at = data + (uint64_t)off * 8 % w->seg.data_size;
	}
	if (at > data + w->seg.data_size - 8)
		at = data + w->seg.data_size - 8;
	taint(at, 8);
	return at;
}

static void write_somewhere(struct input *in, uint32_t n)
{
	uint8_t *at = somewhere(in);
	size_t size = number(in, 1) % 9;
	uint64_t v;

	(void)n;
	v = number(in, size > 4 ? 4 : size) | (uint64_t)number(in, size > 4 ? size - 4 : 0) << 32;
	memcpy(at, &v, size);
}

/* A small number in one of the words of a lane's header: how far its ring is, who has it. */
static void write_header(struct input *in, uint32_t n)
{
	uint32_t what = number(in, 1);
	struct abi_lane *lane = (struct abi_lane *)(void *)shm_lane(&w->shm, n);

	switch (what % 8) {
	case 0:
		lane->head += (uint64_t)number(in, 1) * 8;
		break;
	case 1:
		lane->head += (uint64_t)number(in, 2) << (what / 8);
		break;
	case 2:
		lane->tail += number(in, 2);
		break;
	case 3:
		lane->owner = number(in, 1);
		break;
	case 4:
		lane->busy = lane->changing = number(in, 1);
		break;
	case 5:
		((struct abi_data *)(void *)w->seg.data)->lanes_high = number(in, 1) % 8;
		break;
	case 6:
		lane->owner_start = number(in, 1);
		break;
	default:
		lane->head = lane->tail = 0;
	}
}

static void put(uint8_t *lane, const void *record, uint32_t size)
{
	const struct shm_map *out = &w->shm.maps[SEG_OUT];
	const struct abi_lane *header = (const struct abi_lane *)(const void *)lane;
	uint64_t ring = out->max_entries, before = header->head & ~(uint64_t)7, need = size + ABI_RING_HEADER;

	if (ring_put(out, lane, record, size))
		return;
	taint(lane + out->off + (before & (ring - 1)), 4);
	taint(lane + out->off + ((header->head - need) & (ring - 1)), need);
}

static void put_record(struct input *in, uint32_t n)
{
	union { struct abi_record hdr; uint64_t words[40]; } r = { .hdr = { .time_ns = number(in, 1) % 2 ? UINT64_MAX : 0 } };
	uint32_t size = 32 + number(in, 1) % 33 * 8;

	r.hdr.size = size - number(in, 1) % 8 * 8;
	put(shm_lane(&w->shm, n), &r, size);
}

/* The rest of the ring is passed over: so is more read than an input can write. */
static void jump(struct input *in, uint32_t n)
{
	const struct shm_map *out = &w->shm.maps[SEG_OUT];
	uint8_t *lane = shm_lane(&w->shm, n), *at;
	struct abi_lane *header = (struct abi_lane *)(void *)lane;
	uint64_t ring = out->max_entries;

	(void)in;
	header->head &= ~(uint64_t)7;
	at = lane + out->off + (header->head & (ring - 1));
	taint(at, 4);
	memcpy(at, &(uint32_t){ ABI_RING_SKIP }, 4);
	header->head = (header->head | (ring - 1)) + 1;
}

static void give_back(struct input *in, uint32_t n)
{
	(void)in;
	drain_give_back(w->reader, n, n % 2);
}

static void time_passes(struct input *in, uint32_t n)
{
	(void)n;
	now_ns += (uint64_t)number(in, 1) * 100000000;
}

static void key_of(struct input *in, uint64_t key[2])
{
	key[0] = number(in, 1) % 64;
	key[1] = ~key[0];
}

static void own_put(struct input *in, uint32_t n)
{
	uint64_t key[2], value = number(in, 1);

	key_of(in, key);
	w->tables[n] = true;
	lane_table_put(&w->shm.maps[SEG_LANE_HASH], shm_lane(&w->shm, n), key, &value, BPF_ANY);
}

static void own_del(struct input *in, uint32_t n)
{
	uint64_t key[2];

	key_of(in, key);
	w->tables[n] = true;
	lane_table_del(&w->shm.maps[SEG_LANE_HASH], shm_lane(&w->shm, n), key);
}

/* By the tracer, in all lanes. */
static void own_kill(struct input *in, uint32_t n)
{
	uint64_t key[2];

	key_of(in, key);
	memset(w->tables, true, sizeof(w->tables));
	shm_map_delete(&w->shm, n % 2 ? SEG_LANE_HASH : SEG_LANE_ARRAY, key);
}

/* A lock that nobody gives back is waited for, a third of a second: not here. */
static void free_locks(void)
{
	const struct shm_map *m = &w->shm.maps[SEG_SHARED];

	memset(w->seg.data + m->off + m->locks_off, 0, (m->mask + 1) * 4);
	w->shared = true;
}

static void shared_set(struct input *in, uint32_t n)
{
	uint64_t key[2], value = n;

	key_of(in, key);
	free_locks();
	shm_map_set(&w->shm, SEG_SHARED, key, &value);
}

static void shared_del(struct input *in, uint32_t n)
{
	uint64_t key[2];

	(void)n;
	key_of(in, key);
	free_locks();
	shm_map_delete(&w->shm, SEG_SHARED, key);
}

/* The next process: given its lane, or it looks for one. */
static void take_lane(struct input *in, uint32_t n)
{
	struct shm_run run;
	bool any = number(in, 1) % 2;

	if (!any)
		((struct abi_lane *)(void *)shm_lane(&w->shm, n))->owner = 0;
	memset(w->tables, true, sizeof(w->tables));
	makes_run = true;
	if (!shm_run_init(&run, &w->shm, any ? -1 : (int)n, 78, 5))
		shm_run_fini(&run);
	makes_run = false;
}

static void drain(struct input *in, uint32_t n)
{
	int answers = number(in, 1) % 8 + 1;

	(void)n;
	reader_drain(w->reader, FROM_NS, take_record, &answers);
}

static void each(struct input *in, uint32_t n)
{
	unsigned int elements = 0;

	(void)n;
	of_map = number(in, 1) % SEG_MAPS;
	if (reader_each(w->reader, of_map, take_element, &elements))
		abort();
}

static void ask(struct input *in, uint32_t n)
{
	struct abi_control control;

	(void)in;
	(void)n;
	reader_control(w->reader, &control);
	is_private(&control, sizeof(control));
	reader_bad(w->reader);
	shm_busy(&w->shm);
}

static void (*const operations[])(struct input *in, uint32_t lane) = {
	write_somewhere, write_somewhere, write_somewhere, write_header, write_header, put_record, put_record, jump,
	give_back, time_passes, own_put, own_put, own_del, own_kill, shared_set, shared_set, shared_del, take_lane,
	drain, drain, each, ask,
};

static void clear(const struct shm_map *m, uint8_t *base)
{
	memset(base + m->off, 0, m->elems_off + (size_t)m->max_entries * m->stride);
}

/* As new. */
static void clean(void)
{
	struct reader *r = w->reader;

	for (uint32_t n = 0; n < SEG_LANES; n++) {
		memset(shm_lane(&w->shm, n), 0, sizeof(struct abi_lane));
		memset(shm_lane(&w->shm, n) + w->shm.maps[SEG_LANE_ARRAY].off, 0, 8);
		if (w->tables[n])
			clear(&w->shm.maps[SEG_LANE_HASH], shm_lane(&w->shm, n));
		w->tables[n] = false;
	}
	if (w->shared)
		clear(&w->shm.maps[SEG_SHARED], w->seg.data);
	w->shared = false;
	memset(w->seg.data, 0, sizeof(struct abi_data));
	while (w->ndirty) {
		w->ndirty--;
		memset(w->dirty[w->ndirty].at, 0, w->dirty[w->ndirty].n);
	}
	memset(r->rings, 0, w->shm.nlanes * sizeof(*r->rings));
	r->lanes = 1;
	r->looks = r->next = 0;
	r->bad = 0;
	r->corrupt = false;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input in = { data, size };
	unsigned int elements = 0;
	int answers = 1 << 20;
	uint32_t op;

	for (int k = 0; k < 2 && !worlds[k].reader; k++)
		make(&worlds[k], k);
	w = &worlds[number(&in, 1) % 3 == 1];
	is_on = true;
	now_ns = 1000000000;
	for (int k = 0; k < OPERATIONS && in.left; k++) {
		op = number(&in, 1);
		operations[op / SEG_LANES % (sizeof(operations) / sizeof(*operations))](&in, op % SEG_LANES);
	}
	reader_drain(w->reader, FROM_NS, take_record, &answers);
	for (of_map = 0; of_map < SEG_MAPS; of_map++, elements = 0)
		if (reader_each(w->reader, of_map, take_element, &elements))
			abort();
	clean();
	is_on = false;
	return 0;
}
