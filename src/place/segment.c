#include "place/segment.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "abi/python.h"
#include "base/now.h"

static struct abi_data *data_of(const struct segment *s)
{
	return (struct abi_data *)(void *)s->data;
}

/* --- creation ----------------------------------------------------------------------------------------- */

#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 0x8U	/* Linux 6.3 */
#endif

/* Seal it against execution, if the kernel can: with vm.memfd_noexec=2 other memfds are not allowed. */
static int new_file(const char *name)
{
	int fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_NOEXEC_SEAL);

	return fd < 0 && errno == EINVAL ? memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING) : fd;
}

int segment_init(struct segment *s, const struct layout *l, struct checked *checked, struct named *named)
{
	int ends[2];
	void *data;

	*s = (struct segment){ .image_fd = -1, .data_fd = -1, .wake_fd = -1, .woken_fd = -1, .checked = checked,
			       .named = named, .made_ns = now_ns() };
	s->data_fd = new_file("dtap-data");
	if (s->data_fd < 0 || ftruncate(s->data_fd, (off_t)l->data_size) ||
	    fcntl(s->data_fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL))
		return -errno;
	data = mmap(NULL, l->data_size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, s->data_fd, 0);
	if (data == MAP_FAILED)
		return -errno;
	s->data = data;
	s->data_size = l->data_size;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends))
		return -errno;
	s->wake_fd = ends[0];
	s->woken_fd = ends[1];
	return 0;
}

void segment_fini(struct segment *s)
{
	reader_free(s->reader);
	free(s->costs);
	named_here_fini(&s->named_here);
	shm_fini(&s->shm);
	if (s->image)
		munmap(s->image, s->image_size);
	if (s->data)
		munmap(s->data, s->data_size);
	for (int k = 0; k < 4; k++) {
		int fd = (int[]){ s->image_fd, s->data_fd, s->wake_fd, s->woken_fd }[k];

		if (fd >= 0)
			close(fd);
	}
}

static int make_image(struct segment *s, void (*fill)(void *ctx, uint8_t *image), void *ctx)
{
	void *image;

	s->image_fd = new_file("dtap-image");
	if (s->image_fd < 0 || ftruncate(s->image_fd, (off_t)s->image_size))
		return -errno;
	image = mmap(NULL, s->image_size, PROT_READ | PROT_WRITE, MAP_SHARED, s->image_fd, 0);
	if (image == MAP_FAILED)
		return -errno;
	fill(ctx, image);
	munmap(image, s->image_size);
	if (fcntl(s->image_fd, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL))
		return -errno;
	image = mmap(NULL, s->image_size, PROT_READ, MAP_SHARED, s->image_fd, 0);
	if (image == MAP_FAILED)
		return -errno;
	s->image = image;
	return 0;
}

int segment_finish(struct segment *s, uint64_t size, void (*fill)(void *ctx, uint8_t *image), void *ctx, const char **why)
{
	int e;

	s->image_size = size;
	e = make_image(s, fill, ctx);
	if (e)
		*why = strerror(-e);
	else
		e = shm_open_segment(s->image, s->image_size, s->data, s->data_size, &s->shm, why);
	if (!e) {
		*why = "out of memory";
		e = reader_new(&s->shm, s->data_fd, checked_record_max(s->checked), &s->reader);
	}
	if (e)
		return e;
	clock_start(&s->clock, &data_of(s)->clock);
	s->shm.clock = &s->clock.own;
	return 0;
}

/* --- what targets write ------------------------------------------------------------------------------- */

void segment_publish(struct segment *s, const struct segment_own *own)
{
	struct abi_control *c = &data_of(s)->control;

	__atomic_store_n(&c->walltime_off_ns, own->walltime_off_ns, __ATOMIC_RELAXED);
	__atomic_store_n(&c->state, own->state, __ATOMIC_SEQ_CST);
}

/*
 * The increase of a counter in shared memory, whose value is now @now.  A larger increase than one per nanosecond since
 * the segment was created was not counted but written by a process: it is ignored.
 */
static uint64_t counted(struct segment *s, uint64_t *seen, uint64_t now)
{
	uint64_t n = now - *seen;

	*seen = now;
	if (n <= now_ns() - s->made_ns)
		return n;
	s->told.bad++;
	return 0;
}

void segment_hear(struct segment *s, const struct segment_own *own, bool events_end)
{
	struct place_told *all = &s->told;
	const struct abi_data *d = data_of(s);
	struct abi_control c;

	if (!s->reader)
		return;
	reader_control(s->reader, &c);
	for (int k = 0; k < ABI_DROP_MAX; k++)
		all->drops[k] += counted(s, &s->seen.drops[k], c.drops[k]);
	/* Losses that programs do not count themselves. */
	all->drops[ABI_DROP_BUSY] += counted(s, &s->seen.failed, __atomic_load_n(&d->failed_runs, __ATOMIC_RELAXED)) +
				     counted(s, &s->seen.unserved, __atomic_load_n(&d->no_lane, __ATOMIC_RELAXED));
	all->bad += reader_bad(s->reader);
	all->errors = c.errors;
	all->interpreted = c.interpreted < 4096 ? (int)c.interpreted : 0;
	all->over = c.state == ABI_STATE_DRAINING && events_end;
	if ((c.state != own->state && !all->over) || c.walltime_off_ns != own->walltime_off_ns)
		segment_publish(s, own);
}

struct draining {
	struct segment *s;
	int (*record)(void *ctx, const struct record *rec);
	void *ctx;
};

/* Replace the record's probe index by the number that all segments share.  False: there is no such probe. */
static bool number_probe(struct segment *s, const struct record *rec)
{
	/* The record is in the reader's private buffer, const for callbacks, but may be changed here. */
	struct abi_record *hdr = (struct abi_record *)(uintptr_t)rec->hdr;
	uint32_t number;

	if (hdr->probe < s->named->first || hdr->rec == ABI_REC_STACK || hdr->rec == ABI_REC_CODE ||
	    hdr->rec == ABI_REC_PROCESS)
		return true;
	number = named_number(s->named, &s->named_here, &s->shm, hdr->probe);
	if (number)
		hdr->probe = number;
	return number;
}

static int one_record(void *ctx, const struct record *rec)
{
	const struct draining *d = ctx;
	struct record marked = *rec;

	marked.is_foreign = d->s->is_foreign;
	if (number_probe(d->s, rec) && checked_record(d->s->checked, rec))
		return d->record(d->ctx, &marked);
	d->s->told.bad++;
	return 0;
}

/* The number of wake messages read at a time. */
enum { WAKES = 64 };

int segment_drain(struct segment *s, int (*record)(void *ctx, const struct record *rec), void *ctx)
{
	struct draining d = { s, record, ctx };
	char news[8];
	int n;

	/* It does no harm if a flood of messages is not read completely. */
	for (int k = 0; k < WAKES && recv(s->woken_fd, news, sizeof(news), MSG_DONTWAIT) > 0; k++)
		;
	n = s->reader ? reader_drain(s->reader, s->made_ns, one_record, &d) : 0;
	clock_keep(&s->clock);
	return n;
}

/*
 * A lane has one owner at a time, and an owner one processor: more time than there was is what a process has written, or a
 * measurement that went wrong.
 */
static uint64_t time_spent(struct segment *s, uint64_t spent_ps, uint64_t most_ns)
{
	s->told.bad += spent_ps / 1000 > 4 * most_ns + 1000000000;
	return spent_ps / 1000 < most_ns ? spent_ps / 1000 : most_ns;
}

void segment_costs(struct segment *s, void (*each)(void *ctx, const struct place_cost *cost), void *ctx)
{
	uint64_t now = now_ns(), most_ns = now - (s->costs_ns ? s->costs_ns : s->made_ns);
	uint32_t n = s->reader ? reader_lanes(s->reader) : 0;

	if (n && !s->costs)
		s->costs = calloc(s->shm.nlanes, sizeof(*s->costs));
	for (uint32_t k = 1; s->costs && k < n; k++) {		/* lane 0 is the tracer's */
		struct segment_cost *c = &s->costs[k];
		struct reader_lane l;
		struct place_cost cost;

		reader_lane(s->reader, k, &l);
		cost = (struct place_cost){ .pid = l.owner ? l.owner : c->owner, .events = l.events - c->events,
					    .spent_ns = time_spent(s, l.spent_ps - c->spent_ps, most_ns) };
		if (l.events != c->events || l.spent_ps != c->spent_ps)
			each(ctx, &cost);
		*c = (struct segment_cost){ l.owner, l.events, l.spent_ps };
	}
	s->costs_ns = now;
}

void segment_clear(struct segment *s, uint32_t map, uint32_t pid)
{
	uint32_t n = s->reader ? reader_lanes(s->reader) : 0;

	for (uint32_t k = 1; k < n; k++) {
		struct reader_lane l;

		reader_lane(s->reader, k, &l);
		if (l.owner == pid)
			shm_map_clear(&s->shm, map, k);
	}
}

struct each {
	struct segment *s;
	uint32_t map;
	void (*fn)(void *ctx, const void *key, const void *value, unsigned int ncpus);
	void *ctx;
};

static void each_element(void *ctx, const void *key, const void *value)
{
	const struct each *e = ctx;

	if (checked_key(e->s->checked, e->map, key))
		e->fn(e->ctx, key, value, 1);
	else
		e->s->told.bad++;
}

int segment_each(struct segment *s, uint32_t map,
		 void (*each)(void *ctx, const void *key, const void *value, unsigned int ncpus), void *ctx)
{
	struct each e = { s, map, each, ctx };

	return s->reader ? reader_each(s->reader, map, each_element, &e) : 0;
}
