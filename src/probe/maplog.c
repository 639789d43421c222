#include "probe/maplog.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <linux/perf_event.h>

#include "base/bytemap.h"
#include "base/grow.h"
#include "probe/procs.h"

enum {
	PAGES = 32,		/* of a ring's data; a power of two */
	ENDED = 1024,		/* processes that are known after their end: their stacks may still come */
	MAX_MAPS = 4096,	/* mappings known of a process */
};

struct made {
	uint64_t time, start, end, off, dev, ino;
	char *path;
};

struct life {
	uint32_t pid, parent;	/* @parent: 0 once it has executed a program */
	uint64_t number, since;	/* @since: mappings that are older belong to its last program */
	struct made *v;
	size_t n, cap;
};

/* A record, copied from a ring. */
struct logged {
	uint64_t time;
	struct perf_event_header hdr;
	uint8_t *bytes;		/* all of it */
};

struct ring {
	int fd;
	struct perf_event_mmap_page *page;	/* NULL: its processor is not there */
};

struct maplog {
	int epoll;
	size_t page_size, nrings;
	struct ring *rings;
	struct bytemap lives;			/* by pid */
	uint64_t numbers;
	uint32_t ended[ENDED];
	uint64_t ended_numbers[ENDED];
	size_t nended;				/* all that ever ended */
	struct logged *v;			/* what maplog_read() has just read */
	size_t n, cap;
	unsigned int users;
};

static struct maplog *shared;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static int open_ring(struct maplog *l, struct ring *r, int cpu)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE, .size = sizeof(attr), .config = PERF_COUNT_SW_DUMMY, .sample_type = PERF_SAMPLE_TIME,
		.sample_id_all = 1, .mmap = 1, .mmap2 = 1, .comm = 1, .comm_exec = 1, .task = 1, .exclude_kernel = 1,
		.watermark = 1, .wakeup_watermark = (uint32_t)(PAGES * l->page_size / 4),
	};
	struct epoll_event ev = { .events = EPOLLIN };
	void *at;

	r->fd = (int)syscall(__NR_perf_event_open, &attr, -1, cpu, -1, PERF_FLAG_FD_CLOEXEC);
	if (r->fd < 0)
		return errno == ENODEV ? 0 : -errno;	/* a possible processor that is not online */
	at = mmap(NULL, (1 + PAGES) * l->page_size, PROT_READ | PROT_WRITE, MAP_SHARED, r->fd, 0);
	if (at == MAP_FAILED)
		return -errno;
	r->page = at;
	return epoll_ctl(l->epoll, EPOLL_CTL_ADD, r->fd, &ev) ? -errno : 0;
}

static void free_log(struct maplog *l);

static struct maplog *new_log(void)
{
	struct maplog *l = calloc(1, sizeof(*l));
	size_t n = (size_t)sysconf(_SC_NPROCESSORS_CONF);
	int err = 0;

	if (!l)
		return NULL;
	l->page_size = (size_t)sysconf(_SC_PAGESIZE);
	l->epoll = epoll_create1(EPOLL_CLOEXEC);
	l->rings = calloc(n, sizeof(*l->rings));
	if (l->epoll < 0 || !l->rings)
		err = -ENOMEM;
	while (!err && l->nrings < n) {
		err = open_ring(l, &l->rings[l->nrings], (int)l->nrings);
		l->nrings++;
	}
	if (!err)
		return l;
	free_log(l);
	return NULL;
}

struct maplog *maplog_open(void)
{
	struct maplog *l;

	pthread_mutex_lock(&lock);
	if (!shared)
		shared = new_log();
	l = shared;
	if (l)
		l->users++;
	pthread_mutex_unlock(&lock);
	return l;
}

void maplog_close(struct maplog *l)
{
	if (!l)
		return;
	pthread_mutex_lock(&lock);
	if (!--l->users) {
		free_log(l);
		shared = NULL;
	}
	pthread_mutex_unlock(&lock);
}

static void forget_maps(struct life *p)
{
	for (size_t i = 0; i < p->n; i++)
		free(p->v[i].path);
	p->n = 0;
}

static void free_life(struct life *p)
{
	if (!p)
		return;
	forget_maps(p);
	free(p->v);
	free(p);
}

static void free_log(struct maplog *l)
{
	struct life *p;
	size_t pos = 0;

	for (size_t i = 0; i < l->nrings; i++) {
		if (l->rings[i].page)
			munmap(l->rings[i].page, (1 + PAGES) * l->page_size);
		if (l->rings[i].fd >= 0)
			close(l->rings[i].fd);
	}
	if (l->epoll >= 0)
		close(l->epoll);
	while ((p = bytemap_next(&l->lives, &pos)))
		free_life(p);
	bytemap_fini(&l->lives);
	free(l->rings);
	free(l->v);
	free(l);
}

int maplog_fd(const struct maplog *l)
{
	return l->epoll;
}

/* --- lives -------------------------------------------------------------------------------------------- */

static struct life *find_life(const struct maplog *l, uint32_t pid)
{
	return bytemap_get(&l->lives, &pid, sizeof(pid));
}

/* The process that has @pid now; a new one if @is_new.  NULL: no memory. */
static struct life *take_life(struct maplog *l, uint32_t pid, bool is_new)
{
	struct life *p = find_life(l, pid);

	if (p && is_new) {
		bytemap_del(&l->lives, &pid, sizeof(pid));
		free_life(p);
		p = NULL;
	}
	if (p)
		return p;
	p = calloc(1, sizeof(*p));
	if (!p || bytemap_set(&l->lives, &pid, sizeof(pid), p)) {
		free(p);
		return NULL;
	}
	p->pid = pid;
	p->number = is_new ? ++l->numbers : 0;
	return p;
}

static void add_map(struct life *p, const struct made *m, const char *path)
{
	if (m->time < p->since || p->n == MAX_MAPS || !grow_array(&p->v, &p->cap, p->n, sizeof(*p->v)))
		return;
	p->v[p->n] = *m;
	p->v[p->n].path = strdup(path);
	p->n += p->v[p->n].path != NULL;
}

static void note_mmap(struct maplog *l, const struct logged *rec)
{
	struct {
		struct perf_event_header hdr;
		uint32_t pid, tid;
		uint64_t addr, len, off;
		uint32_t major, minor;
		uint64_t ino, generation;
		uint32_t prot, flags;
		char path[];
	} *r = (void *)rec->bytes;
	struct made m;
	struct life *p;

	if (rec->hdr.size < sizeof(*r) + 8 + sizeof(rec->time) || r->path[0] != '/' || !memchr(r->path, 0, rec->hdr.size - sizeof(*r)))
		return;
	p = take_life(l, r->pid, false);
	m = (struct made){ rec->time, r->addr, r->addr + r->len, r->off, makedev(r->major, r->minor), r->ino, NULL };
	if (p)
		add_map(p, &m, r->path);
}

/* A thread's name; with PERF_RECORD_MISC_COMM_EXEC, because its process executes another program. */
static void note_comm(struct maplog *l, const struct logged *rec)
{
	struct { struct perf_event_header hdr; uint32_t pid, tid; } *r = (void *)rec->bytes;
	struct life *p;

	if (!(rec->hdr.misc & PERF_RECORD_MISC_COMM_EXEC) || rec->hdr.size < sizeof(*r) + sizeof(rec->time))
		return;
	p = take_life(l, r->pid, false);
	if (!p)
		return;
	forget_maps(p);
	p->parent = 0;
	p->number = ++l->numbers;
	p->since = rec->time;
}

static void note_task(struct maplog *l, const struct logged *rec)
{
	struct { struct perf_event_header hdr; uint32_t pid, parent, tid, parent_tid; } *r = (void *)rec->bytes;
	struct life *p, *parent, *old;
	size_t at;

	if (rec->hdr.size < sizeof(*r) + sizeof(rec->time) || r->pid != r->tid)
		return;		/* a thread's */
	if (rec->hdr.type == PERF_RECORD_FORK) {
		p = r->pid == r->parent ? NULL : take_life(l, r->pid, true);
		parent = find_life(l, r->parent);
		if (p)
			p->parent = r->parent;
		for (size_t i = 0; p && parent && i < parent->n; i++)
			add_map(p, &parent->v[i], parent->v[i].path);
		return;
	}
	p = find_life(l, r->pid);
	if (!p)
		return;
	at = l->nended++ % ENDED;
	old = l->ended[at] ? find_life(l, l->ended[at]) : NULL;
	if (old && old != p && old->number == l->ended_numbers[at]) {
		bytemap_del(&l->lives, &old->pid, sizeof(old->pid));
		free_life(old);
	}
	l->ended[at] = p->pid;
	l->ended_numbers[at] = p->number;
}

/* --- rings -------------------------------------------------------------------------------------------- */

/* Copy a record from @at of the ring's data, around its end.  NULL: no memory. */
static uint8_t *copy(const struct maplog *l, const uint8_t *data, uint64_t at, size_t size)
{
	size_t room = PAGES * l->page_size, from = at % room, first = room - from < size ? room - from : size;
	uint8_t *bytes = malloc(size);

	if (!bytes)
		return NULL;
	memcpy(bytes, data + from, first);
	memcpy(bytes + first, data, size - first);
	return bytes;
}

static void read_ring(struct maplog *l, struct ring *r)
{
	const uint8_t *data = (const uint8_t *)r->page + l->page_size;
	uint64_t at = r->page->data_tail, end = __atomic_load_n(&r->page->data_head, __ATOMIC_ACQUIRE);
	size_t room = PAGES * l->page_size;

	while (at < end) {
		struct logged rec;

		memcpy(&rec.hdr, data + at % room, sizeof(rec.hdr));	/* records are multiples of 8, so it is in one piece */
		if (rec.hdr.size < sizeof(rec.hdr) || rec.hdr.size > end - at)
			break;
		if (!grow_array(&l->v, &l->cap, l->n, sizeof(*l->v)))
			break;
		rec.bytes = rec.hdr.size >= sizeof(rec.hdr) + sizeof(rec.time) ? copy(l, data, at, rec.hdr.size) : NULL;
		if (rec.bytes) {
			memcpy(&rec.time, rec.bytes + rec.hdr.size - sizeof(rec.time), sizeof(rec.time));
			l->v[l->n++] = rec;
		}
		at += rec.hdr.size;
	}
	__atomic_store_n(&r->page->data_tail, at < end ? end : at, __ATOMIC_RELEASE);
}

static int by_time(const void *a, const void *b)
{
	const struct logged *x = a, *y = b;

	return x->time < y->time ? -1 : x->time > y->time;
}

void maplog_read(struct maplog *l)
{
	pthread_mutex_lock(&lock);
	l->n = 0;
	for (size_t i = 0; i < l->nrings; i++)
		if (l->rings[i].page)
			read_ring(l, &l->rings[i]);
	if (l->n)
		qsort(l->v, l->n, sizeof(*l->v), by_time);
	for (size_t i = 0; i < l->n; i++) {
		const struct logged *rec = &l->v[i];

		switch (rec->hdr.type) {
		case PERF_RECORD_MMAP2:
			note_mmap(l, rec);
			break;
		case PERF_RECORD_COMM:
			note_comm(l, rec);
			break;
		case PERF_RECORD_FORK:
		case PERF_RECORD_EXIT:
			note_task(l, rec);
			break;
		}
		free(rec->bytes);
	}
	l->n = 0;
	pthread_mutex_unlock(&lock);
}

/* --- answers ------------------------------------------------------------------------------------------ */

/* What is known of the process that has @pid, but its mappings; zeros: nothing. */
static struct life facts(const struct maplog *l, uint32_t pid)
{
	struct life ret = { 0 };
	const struct life *p;

	pthread_mutex_lock(&lock);
	p = find_life(l, pid);
	if (p)
		ret = (struct life){ .pid = pid, .parent = p->parent, .number = p->number, .since = p->since };
	pthread_mutex_unlock(&lock);
	return ret;
}

uint64_t maplog_life(const struct maplog *l, uint32_t pid)
{
	return facts(l, pid).number;
}

int maplog_each(const struct maplog *l, uint32_t pid, int (*fn)(void *ctx, const struct procs_map *m), void *ctx)
{
	const struct life *p;
	int err;

	pthread_mutex_lock(&lock);
	p = find_life(l, pid);
	err = p ? 0 : -ESRCH;
	for (size_t i = p ? p->n : 0; i-- && !err;) {
		const struct made *m = &p->v[i];
		const struct procs_map map = { p->pid, m->start, m->end, m->off, m->dev, m->ino, m->path };

		err = fn(ctx, &map);
	}
	pthread_mutex_unlock(&lock);
	return err;
}

uint32_t maplog_parent(const struct maplog *l, uint32_t pid)
{
	return facts(l, pid).parent;
}
