/*
 * The kernel's helpers, by its numbers, on a session's shared memory: those that bpf/ generates calls to.  Addresses
 * from the script or the traced program are accessed by memory.c.
 */
#include "vm/shm.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "vm/add.h"
#include "vm/calls.h"
#include "vm/helper.h"
#include "vm/memory.h"
#include "vm/ring.h"
#include "vm/table_priv.h"

#define HELPER(NAME)										\
	static uint64_t NAME(uint64_t r1, uint64_t r2, uint64_t r3, uint64_t r4, uint64_t r5, struct vm_thread *t)

static struct shm_run *run_of(const struct vm_thread *t)
{
	return t->user;
}

static const struct shm_map *map_of(uint64_t handle)
{
	return (const struct shm_map *)(uintptr_t)handle;
}

static void *pointer(uint64_t address)
{
	return (void *)(uintptr_t)address;
}

static uint64_t error(int err)
{
	return (uint64_t)(int64_t)err;
}

#define UNUSED5() ((void)r1, (void)r2, (void)r3, (void)r4, (void)r5, (void)t)

/* --- maps --------------------------------------------------------------------------------------------- */

/*
 * Most lookups in a map have the same key as the one before: a thread's variable, a loop's aggregation.  So the element
 * found last is tried before the table; if it is in the index and has the key, it is the right one.
 */
static inline struct shm_recent *recent_of(const struct shm_run *r, const struct shm_map *m)
{
	return __builtin_expect(r->recent != NULL, 1) ? &r->recent[m - r->shm->maps] : NULL;
}

/* The element found last if it is that of @key, live or dead; else NULL. */
static inline struct abi_elem *found_before(const struct shm_recent *recent, const struct shm_map *m, const void *key)
{
	struct abi_elem *e = __builtin_expect(recent != NULL, 1) ? recent->found : NULL;

	return __builtin_expect(e && table_is_indexed(e) && table_same_key(m, e, key), 1) ? e : NULL;
}

static inline void *find_recent(struct shm_run *r, const struct shm_map *m, const void *key)
{
	struct shm_recent *recent = recent_of(r, m);
	struct abi_elem *e = found_before(recent, m, key);
	void *value;

	if (__builtin_expect(e != NULL, 1))
		return e->state == ABI_ELEM_LIVE ? table_value(m, e) : NULL;
	value = lane_table_find(m, r->lane, key);
	if (value && recent)
		recent->found = (struct abi_elem *)((uint8_t *)value - m->key_size - sizeof(struct abi_elem));
	return value;
}

/*
 * A thread's variables are freed only here, when there is no room for another thread's: in most clauses they are set and reset
 * at each event.  To look for some takes long, so after a search without success the next ones wait.
 */
static __attribute__((noinline)) bool free_zeros(struct shm_run *r, const struct shm_map *m, struct shm_recent *recent)
{
	enum { WAIT = 1000 };

	if (!recent)
		return false;
	if (recent->waits) {
		recent->waits--;
		return false;
	}
	if (lane_table_free_zeros(m, r->lane))
		return true;
	recent->waits = WAIT;
	return false;
}

static int put_recent(struct shm_run *r, const struct shm_map *m, const void *key, const void *value, uint64_t all_flags)
{
	uint64_t flags = all_flags & ~(uint64_t)ABI_UPDATE_ZERO_IS_NONE;
	struct shm_recent *recent = recent_of(r, m);
	struct abi_elem *e = found_before(recent, m, key);
	int err;

	if (e)
		return lane_table_set(m, e, value, flags);
	err = lane_table_put(m, r->lane, key, value, flags);
	if (err == -E2BIG && all_flags & ABI_UPDATE_ZERO_IS_NONE && free_zeros(r, m, recent))
		err = lane_table_put(m, r->lane, key, value, flags);
	if (err == -E2BIG && recent && recent->dead) {
		lane_table_bury(m, r->lane, recent->dead);
		recent->dead = NULL;
		err = lane_table_put(m, r->lane, key, value, flags);
	}
	return err;
}

/*
 * A thread's variable is often set and reset, event by event: so the element found last is not removed, but the one that
 * was left before is.
 */
static int delete_recent(struct shm_run *r, const struct shm_map *m, const void *key)
{
	struct shm_recent *recent = recent_of(r, m);
	struct abi_elem *e = found_before(recent, m, key);

	if (!e)
		return lane_table_del(m, r->lane, key);
	if (!lane_table_mark_dead(e))
		return -ENOENT;
	if (recent->dead && recent->dead != e)
		lane_table_bury(m, r->lane, recent->dead);
	recent->dead = e;
	return 0;
}

HELPER(map_lookup)
{
	const struct shm_map *m = map_of(r1);
	struct shm_run *r = run_of(t);
	uint32_t at;

	(void)r3, (void)r4, (void)r5;
	if (__builtin_expect(m->kind == ABI_MAP_LANE_HASH, 1))
		return (uint64_t)(uintptr_t)find_recent(r, m, pointer(r2));
	switch (m->kind) {
	case ABI_MAP_SHARED_HASH:
		return (uint64_t)(uintptr_t)shared_table_find(m, r->shm->data, pointer(r2), shm_locker(r));
	case ABI_MAP_SCRATCH:
	case ABI_MAP_LANE_ARRAY:
		return (uint64_t)(uintptr_t)(r->lane + m->off);
	case ABI_MAP_IMAGE:
	case ABI_MAP_ARRAY:
	case ABI_MAP_LANE_BUFFERS:
		memcpy(&at, pointer(r2), sizeof(at));
		if (at >= m->max_entries)
			return 0;
		return (uint64_t)(uintptr_t)((m->kind == ABI_MAP_IMAGE ? r->shm->image : m->kind == ABI_MAP_ARRAY ?
					      r->shm->data : r->lane) + m->off + (uint64_t)at * m->value_size);
	default:
		return 0;
	}
}

HELPER(map_update)
{
	const struct shm_map *m = map_of(r1);
	struct shm_run *r = run_of(t);

	(void)r5;
	if (m->kind == ABI_MAP_LANE_HASH)
		return error(put_recent(r, m, pointer(r2), pointer(r3), r4));
	if (m->kind == ABI_MAP_SHARED_HASH)
		return error(shared_table_put(m, r->shm->data, pointer(r2), pointer(r3), r4, shm_locker(r)));
	return error(-EINVAL);
}

HELPER(map_delete)
{
	const struct shm_map *m = map_of(r1);
	struct shm_run *r = run_of(t);

	(void)r3, (void)r4, (void)r5;
	if (m->kind == ABI_MAP_LANE_HASH)
		return error(delete_recent(r, m, pointer(r2)));
	if (m->kind == ABI_MAP_SHARED_HASH)
		return error(shared_table_del(m, r->shm->data, pointer(r2), shm_locker(r)));
	return error(-EINVAL);
}

/* --- memory ------------------------------------------------------------------------------------------- */

HELPER(probe_read)	/* dst, size, src */
{
	(void)r4, (void)r5;
	return r2 ? error(memory_read(run_of(t), pointer(r1), r2, r3)) : 0;
}

/* Only in the traced process: programs that run in the tracer have nothing to write to. */
HELPER(probe_write)	/* dst, src, size */
{
	(void)r4, (void)r5;
	return error(memory_write(run_of(t), r1, pointer(r2), r3));
}

HELPER(probe_read_str)	/* dst, size, src */
{
	(void)r4, (void)r5;
	return r2 ? (uint64_t)memory_read_string(run_of(t), pointer(r1), r2, r3) : 0;
}

HELPER(compare_strings)	/* a, size, b, size */
{
	(void)r4, (void)r5, (void)t;
	return (uint64_t)(int64_t)strncmp(pointer(r1), pointer(r3), r2);
}

HELPER(quantize)	/* value */
{
	(void)r2, (void)r3, (void)r4, (void)r5, (void)t;
	return shm_quantize((int64_t)r1);
}

HELPER(value)	/* dst, size, what, object, name */
{
	const struct shm_values *values = run_of(t)->values;

	if (__builtin_expect(values && r2, 1))
		return values->value(r1, r2, r3, r4, r5, t);
	memset(pointer(r1), 0, r2);
	return error(-ABI_FAULT_VALUE_UNKNOWN);
}

HELPER(integer)	/* dst, 16, what, object, name */
{
	const struct shm_values *values = run_of(t)->values;

	if (__builtin_expect(values && values->integer && r2 == 16, 1))
		return values->integer(r1, r2, r3, r4, r5, t);
	memset(pointer(r1), 0, r2);
	return 1;
}

/* --- where and when ----------------------------------------------------------------------------------- */

HELPER(ktime)
{
	UNUSED5();
	if (__builtin_expect(run_of(t)->at_ns != 0, 0))
		return run_of(t)->at_ns;
	return shm_now_and_cpu(run_of(t)->shm, &run_of(t)->cpu);
}

HELPER(uid_gid)
{
	UNUSED5();
	return (uint64_t)getgid() << 32 | getuid();
}

static inline uint32_t cpu_of(const struct shm_run *r)
{
	unsigned int cpu = 0;

	if (r->cpu)
		return r->cpu - 1;
#if defined(__x86_64__)
	/*
	 * The limit of this segment descriptor has the processor's number; the vDSO's getcpu reads it the same way
	 * (Linux 2.6.23).
	 */
	__asm__("lsl %1, %0" : "=r"(cpu) : "r"(0x7b) : "cc");
	return cpu & 0xfff;
#else
	syscall(SYS_getcpu, &cpu, NULL, NULL);
	return cpu;
#endif
}

HELPER(cpu)
{
	UNUSED5();
	return cpu_of(run_of(t));
}

/* Copy a string of dtap's own, cut to @size.  Returns bytes with the NUL. */
static uint64_t give_string(char *dst, uint64_t size, const char *src, uint64_t max)
{
	uint64_t n = strnlen(src, max < size - 1 ? max : size - 1);

	memcpy(dst, src, n);
	dst[n] = '\0';
	return n + 1;
}

HELPER(comm)	/* dst, size */
{
	char name[16] = "";
	int saved = errno;

	(void)r3, (void)r4, (void)r5, (void)t;
	if (calls_may(ABI_CALLS_NAME))
		syscall(SYS_prctl, 16 /* PR_GET_NAME */, name);
	errno = saved;
	if (r2)
		give_string(pointer(r1), r2, name, sizeof(name));
	return 0;
}

/* A process sees its root as "/".  readlink needs room for a whole path. */
HELPER(path)	/* dst, size, root */
{
	char whole[4096] = "/";
	int saved = errno;
	long n = 2;

	(void)r4, (void)r5, (void)t;
	if (!r3)
		n = !calls_may(ABI_CALLS_FOLDER) ? 0 : syscall(SYS_getcwd, whole, sizeof(whole));
	errno = saved;
	if (n < 1 || !r2)
		return 0;
	give_string(pointer(r1), r2, whole, sizeof(whole));
	return (uint64_t)n < r2 ? (uint64_t)n : r2;
}

HELPER(parent)
{
	UNUSED5();
	return (uint64_t)getppid();
}

HELPER(thread_time)
{
	struct timespec ts = { 0 };

	UNUSED5();
	if (run_of(t)->thread_time)
		return run_of(t)->thread_time();
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

enum { GENERATIONS = 24 };	/* as in the kernel place */

#define PROCESS(x) return (uint64_t)(x)
#define NONE return 0

/* Same width as the kernel's, but another generator: splitmix64, seeded with the time. */
HELPER(prandom)
{
	struct shm_run *r = run_of(t);
	uint64_t z;

	UNUSED5();
	if (!r->random)
		r->random = shm_now(r->shm) ^ (uint64_t)(uintptr_t)r;
	r->random += 0x9e3779b97f4a7c15;
	z = (r->random ^ r->random >> 30) * 0xbf58476d1ce4e5b9;
	z = (z ^ z >> 27) * 0x94d049bb133111eb;
	return (uint32_t)(z >> 32);
}

HELPER(send_signal)	/* signal: sent after the program; the kernel's reaches the process then, too */
{
	(void)r2, (void)r3, (void)r4, (void)r5;
	if (r1 - 1 >= 64)
		return error(-EINVAL);
	run_of(t)->signals |= (uint64_t)1 << (r1 - 1);
	return 0;
}

/* The parent of process @pid, field 4 of /proc/pid/stat; 0 if it has none or that cannot be read. */
static uint64_t parent_of(uint64_t pid)
{
	char path[32], digits[20], buf[512], *p = path + sizeof("/proc/") - 1;
	int n = 0, fd;
	ssize_t got;

	memcpy(path, "/proc/", sizeof("/proc/"));
	do {
		digits[n++] = (char)('0' + pid % 10);
		pid /= 10;
	} while (pid);
	while (n)
		*p++ = digits[--n];
	memcpy(p, "/stat", sizeof("/stat"));
	fd = open(path, O_RDONLY | O_CLOEXEC);
	got = fd < 0 ? 0 : read(fd, buf, sizeof(buf) - 1);
	if (fd >= 0)
		close(fd);
	buf[got > 0 ? got : 0] = '\0';
	p = strrchr(buf, ')');
	return p && strlen(p) > 4 ? memory_decimal(p + 4) : 0;	/* ") S 123" */
}

HELPER(progenyof)	/* pid */
{
	const struct shm_run *r = run_of(t);
	uint64_t pid = r->thread.values[SHM_TASK] >> 32;
	int saved = errno;

	(void)r2, (void)r3, (void)r4, (void)r5;
	if (r1 == pid)
		return 1;
	if (r->shm->other_pids)
		return error(-ENOTSUP);
	pid = (uint64_t)getppid();
	for (int k = 0; pid && pid != r1 && k < GENERATIONS; k++)
		pid = parent_of(pid);
	errno = saved;
	return pid && pid == r1;
}

HELPER(self)	/* what */
{
	(void)t, (void)r2, (void)r3, (void)r4, (void)r5;
	switch (r1) {
#define ABI_TASK(NAME, path, kind, own) case ABI_TASK_##NAME: own;
#include "abi/task.def"
#undef ABI_TASK
	default:
		return 0;
	}
}

/* --- output ------------------------------------------------------------------------------------------- */

/* Has somebody woken the tracer already? */
static inline bool is_awake(const struct shm_run *r)
{
	return __atomic_load_n(&((const struct abi_data *)r->shm->data)->woken, __ATOMIC_RELAXED);
}

/* Wake the tracer; only the first that finds it asleep makes the system call. */
static __attribute__((noinline)) void wake(struct shm_run *r)
{
	struct abi_data *d = (struct abi_data *)r->shm->data;
	int saved = errno;

	if (r->wake.fd < 0 || is_awake(r) || __atomic_exchange_n(&d->woken, 1, __ATOMIC_SEQ_CST))
		return;
	if (cookie_same(&r->wake))
		send(r->wake.fd, "", 1, MSG_NOSIGNAL | MSG_DONTWAIT);
	errno = saved;
}

void shm_wake(struct shm_run *r)
{
	wake(r);
}

/* The tracer is woken when the ring is full to this fraction. */
enum { WAKE_PART = 64 };

/*
 * Called now and then by a waiting writer.  A tracer whose pid cannot be checked counts as dead when it no longer
 * updates its clock.
 */
static bool tracer_gone(const struct shm_run *r, int k, uint64_t *kept)
{
	const struct abi_data *d = (const struct abi_data *)r->shm->data;
	const struct abi_lane *tracer = (const struct abi_lane *)shm_lane(r->shm, 0);
	uint64_t before = *kept;

	if (!r->shm->other_pids && calls_may(ABI_CALLS_SIGNAL))
		return k % 1000 == 999 && kill((pid_t)tracer->owner, 0) < 0 && errno == ESRCH;
	if (k % 30000)
		return false;
	*kept = __atomic_load_n(&d->clock.base_ns, __ATOMIC_RELAXED);
	return k && *kept == before;
}

/* Wait while the tracer is alive and takes records; it looks at them at least every second. */
static int wait_for_room(struct shm_run *r, const struct shm_map *m, const void *data, uint32_t size)
{
	const struct abi_data *d = (const struct abi_data *)r->shm->data;
	const struct timespec wait = { .tv_nsec = 50000 };
	int err = -EAGAIN, saved = errno;
	uint64_t kept = 0;

	for (int k = 0; err; k++) {
		if (__atomic_load_n(&d->control.state, __ATOMIC_RELAXED) != ABI_STATE_ACTIVE || tracer_gone(r, k, &kept))
			break;
		wake(r);
		nanosleep(&wait, NULL);
		err = ring_put(m, r->lane, data, size);
	}
	errno = saved;
	return err;
}

/*
 * A page fault on the ring costs as much as many records do.  Populating several pages at once costs a fraction of
 * that (Linux 5.14).  POPULATE_READ is enough: pages of shared memory are writable then, too, and those that the
 * tracer allocated already are mapped in groups.  When this was done for the whole ring, nothing is left to do until the tracer gives
 * some of its memory back.
 */
enum { READY_LEAST = 1 << 14, READY_MOST = 1 << 18, PAGE = 4096, POPULATE_READ = 22 /* MADV_POPULATE_READ */ };

__attribute__((noinline)) static void make_ready(struct shm_run *r, const struct shm_map *m, uint32_t need)
{
	const struct abi_lane *lane = (const struct abi_lane *)(const void *)r->lane;
	uint64_t head = lane->head, from = head & ~(uint64_t)(PAGE - 1), released = __atomic_load_n(&lane->released, __ATOMIC_RELAXED);
	uint64_t pos = from & (m->max_entries - 1), size = READY_LEAST, part;
	int saved = errno;

	while ((size < READY_MOST && size < head / 4) || size < (uint64_t)need + PAGE)
		size *= 2;
	if (size > m->max_entries)
		size = m->max_entries;
	r->ring_ready = from + size;
	if (released != r->ring_released) {
		r->ring_released = released;
		r->ring_since = from;
	}
	if (released && from - r->ring_since >= m->max_entries)
		return;
	part = size < m->max_entries - pos ? size : m->max_entries - pos;
	/* If refused, pages are allocated one by one. */
	if (syscall(SYS_madvise, r->lane + m->off + pos, part, POPULATE_READ) ||
	    (part < size && syscall(SYS_madvise, r->lane + m->off, size - part, POPULATE_READ)))
		r->ring_ready = UINT64_MAX;
	errno = saved;
}

/* Waking costs more than a record, and the tracer also looks by itself now and then.  @unread: bytes in the ring. */
static inline __attribute__((always_inline)) void wake_if_due(struct shm_run *r, const struct shm_map *m, uint64_t unread)
{
	if (__builtin_expect(unread >= m->max_entries / WAKE_PART, 0) && !is_awake(r))
		wake(r);
}

/* There is no room in the ring. */
static __attribute__((noinline)) int output_full(struct shm_run *r, const struct shm_map *m, const void *data,
						  uint32_t size)
{
	wake(r);
	return r->shm->flags & ABI_SEGMENT_WAIT && !r->is_tracer ? wait_for_room(r, m, data, size) : -EAGAIN;
}

static inline __attribute__((always_inline)) int append(struct shm_run *r, const struct shm_map *m, const void *data,
							 uint32_t size)
{
	uint64_t unread;

	if (__builtin_expect(ring_append(m, r->lane, data, size, &unread), 0))
		return output_full(r, m, data, size);
	wake_if_due(r, m, unread);
	return 0;
}

/* Once: with a head that a process has made up, or in a small ring, there may be less than is needed. */
static __attribute__((noinline)) int output_ready(struct shm_run *r, const struct shm_map *m, const void *data,
						   uint32_t size)
{
	make_ready(r, m, size + ABI_RING_HEADER);
	return append(r, m, data, size);
}

static inline __attribute__((always_inline)) int output(struct shm_run *r, const struct shm_map *m, const void *data,
							 uint32_t size)
{
	if (__builtin_expect(m->kind != ABI_MAP_OUT, 0))
		return -EINVAL;
	if (__builtin_expect(((const struct abi_lane *)r->lane)->head + size + ABI_RING_HEADER > r->ring_ready, 0))
		return output_ready(r, m, data, size);
	return append(r, m, data, size);
}

int shm_output(struct shm_run *r, const struct shm_map *out, const void *data, uint32_t size)
{
	return output(r, out, data, size);
}

void shm_drop(const struct shm_run *r, enum abi_drop what)
{
	__atomic_fetch_add(&((struct abi_data *)r->shm->data)->control.drops[what], 1, __ATOMIC_RELAXED);
}

HELPER(ring_output)	/* map, data, size, flags */
{
	(void)r4, (void)r5;
	return error(output(run_of(t), map_of(r1), pointer(r2), (uint32_t)r3));
}

/*
 * ABI_HELPER_RECORD where it is not as simple: the record is built in the program's memory, and copied.  The arguments
 * have been checked but for the room for strings.
 */
static __attribute__((noinline)) uint64_t record_built(struct shm_run *r, const struct shm_map *m,
							struct abi_record *rec, uint32_t size, uint64_t strings,
							uint64_t fields)
{
	uint32_t n = (uint32_t)fields, max = (uint32_t)(fields >> 32);
	uint64_t *slots = (uint64_t *)(rec + 1), task = r->thread.values[SHM_TASK], end = sizeof(*rec) + 8 * (uint64_t)n;
	int64_t len;

	for (uint32_t k = 0; k < n; k++) {
		if (!(strings >> k & 1))
			continue;
		if (!max || end + max > size)
			return error(-EINVAL);
		len = memory_read_string(r, (char *)rec + end, max, slots[k]);
		if (len < 1)
			return k + 1;
		slots[k] = (uint64_t)len << 32 | end;
		end += (uint64_t)len;
	}
	rec->tid = (uint32_t)task;
	rec->pid = (uint32_t)(task >> 32);
	rec->cpu = cpu_of(r);
	rec->size = (uint32_t)(end + 7) & ~(uint32_t)7;
	return rec->size > size ? error(-EINVAL) : error(output(r, m, rec, rec->size));
}

enum { RECORD_HEADER = sizeof(struct abi_record) / 8 };
_Static_assert(offsetof(struct abi_record, rec) == 8 && offsetof(struct abi_record, tid) == 16 &&
	       offsetof(struct abi_record, cpu) == 24 && offsetof(struct abi_record, size) == 28, "as words");

/*
 * Build a record in the ring if there is room for the largest in one piece and all its strings are known.  Nobody sees it before the
 * head is set.  @id: rec and probe.  The slots are the first of @values; if @known, those that @from names, and all strings are known.
 * False: nothing was done.
 */
static inline __attribute__((always_inline)) bool record_in_ring(struct shm_run *r, const struct shm_map *m, uint64_t time, uint64_t id,
								  const uint64_t *values, const uint8_t *from,
								  const struct shm_record *rec, bool known)
{
	/* The words of a string, and the record's, may end 7 bytes later. */
	uint64_t need = (uint64_t)rec->size + 8 + ABI_RING_HEADER, ring = m->max_entries, max = rec->strsize;
	uint64_t end = sizeof(struct abi_record) + 8 * (uint64_t)rec->fields, head, pos, *to;
	struct abi_lane *l = (struct abi_lane *)(void *)r->lane;

	head = __atomic_load_n(&l->head, __ATOMIC_RELAXED) & ~(uint64_t)7;
	if (__builtin_expect(head + need > r->ring_ready, 0))
		make_ready(r, m, (uint32_t)need);
	pos = head & (ring - 1);
	if (__builtin_expect(ring - pos < need || head - __atomic_load_n(&l->tail, __ATOMIC_ACQUIRE) > ring - need, 0))
		return false;
	to = (uint64_t *)(void *)(r->lane + m->off + pos + ABI_RING_HEADER);
	to[0] = time;
	to[1] = id;
	to[2] = r->thread.values[SHM_TASK];
	((uint32_t *)(to + 3))[0] = cpu_of(r);
	for (uint32_t k = 0; k < rec->fields; k++)
		to[RECORD_HEADER + k] = values[known ? from[k] : k];
	for (uint64_t left = rec->strings; left; left &= left - 1) {
		uint64_t *slot = to + RECORD_HEADER + __builtin_ctzll(left);
		int64_t len;

		if (__builtin_expect(max - 1 >= rec->size - end, 0))	/* 0, too */
			return false;
		len = known || memory_is_known(r, *slot) ? memory_copy_words((char *)to + end, max, *slot) : 0;
		if (__builtin_expect(!len, 0))
			return false;
		*slot = (uint64_t)len << 32 | end;
		end += (uint64_t)len;
	}
	end = (end + 7) & ~(uint64_t)7;
	((uint32_t *)(to + 3))[1] = (uint32_t)end;
	*(uint32_t *)(to - 1) = (uint32_t)end;
	l = (struct abi_lane *)(void *)r->lane;
	/* Read again, so that fewer registers are kept. */
	head = (__atomic_load_n(&l->head, __ATOMIC_RELAXED) & ~(uint64_t)7) + end + ABI_RING_HEADER;
	__builtin_prefetch(r->lane + m->off + ((head + RING_AHEAD) & (m->max_entries - 1)), 1);
	__atomic_store_n(&l->head, head, __ATOMIC_RELEASE);
	wake_if_due(r, m, head - __atomic_load_n(&l->tail, __ATOMIC_RELAXED));
	return true;
}

bool shm_record(struct shm_run *r, const struct shm_record *rec, uint64_t probe, uint64_t file, uint64_t name, uint64_t line)
{
	const uint64_t task = r->thread.values[SHM_TASK], time = shm_now_and_cpu(r->shm, &r->cpu);
	const uint64_t values[] = {
		[ABI_FIELD_ARG0] = file, [ABI_FIELD_ARG1] = name, [ABI_FIELD_ARG2] = line, [ABI_FIELD_ARG3] = 0,
		[ABI_FIELD_TEXT0] = file, [ABI_FIELD_TEXT1] = name, [ABI_FIELD_TIME] = time, [ABI_FIELD_PID] = task >> 32,
		[ABI_FIELD_TID] = (uint32_t)task,
	};

	return record_in_ring(r, rec->out, time, probe << 32 | rec->id, values, rec->from, rec, true);
}

/* map, record, size, strings, fields | strsize << 32 */
HELPER(record)
{
	const struct shm_record rec = { .size = (uint32_t)r3, .fields = (uint32_t)r5, .strsize = (uint32_t)(r5 >> 32), .strings = r4 };
	const struct shm_map *m = map_of(r1);
	struct shm_run *r = run_of(t);
	const uint64_t *words = pointer(r2);

	if (__builtin_expect(rec.fields > ABI_RECORD_FIELDS || sizeof(struct abi_record) + 8 * (uint64_t)rec.fields > rec.size ||
			     r4 >> rec.fields || m->kind != ABI_MAP_OUT, 0))
		return error(-EINVAL);
	if (__builtin_expect(record_in_ring(r, m, words[0], words[1], words + RECORD_HEADER, NULL, &rec, false), 1))
		return 0;
	return record_built(r, m, pointer(r2), rec.size, r4, r5);
}

HELPER(ring_query)	/* map, what: programs ask only for the bytes not yet read */
{
	UNUSED5();
	return ring_used(run_of(t)->lane);
}

#define MAP_KEY { VM_ARG_MAP, VM_ARG_KEY }
#define INTO { VM_ARG_WRITE, VM_ARG_SIZE }
#define INTO_FROM { VM_ARG_WRITE, VM_ARG_SIZE, VM_ARG_ANY }

const struct vm_helper shm_helpers[] = {
	{ BPF_FUNC_map_lookup_elem, map_lookup, VM_RET_ELEM, MAP_KEY },
	{ BPF_FUNC_map_update_elem, map_update, VM_RET_VALUE, { VM_ARG_MAP, VM_ARG_KEY, VM_ARG_VALUE, VM_ARG_ANY } },
	{ BPF_FUNC_map_delete_elem, map_delete, VM_RET_VALUE, MAP_KEY },
	{ BPF_FUNC_probe_read_user, probe_read, VM_RET_VALUE, INTO_FROM },
	{ BPF_FUNC_probe_read_kernel, probe_read, VM_RET_VALUE, INTO_FROM },
	{ BPF_FUNC_probe_read_user_str, probe_read_str, VM_RET_VALUE, INTO_FROM },
	{ BPF_FUNC_probe_read_kernel_str, probe_read_str, VM_RET_VALUE, INTO_FROM },
	{ BPF_FUNC_probe_write_user, probe_write, VM_RET_VALUE, { VM_ARG_ANY, VM_ARG_READ, VM_ARG_SIZE } },
	{ BPF_FUNC_ktime_get_ns, ktime, VM_RET_VALUE, { VM_ARG_NONE } },
	{ BPF_FUNC_get_current_pid_tgid, NULL, VM_RET_VALUE, { VM_ARG_NONE }, SHM_TASK },
	{ ABI_HELPER_SCRATCH, NULL, VM_RET_SCRATCH, { VM_ARG_NONE }, SHM_SCRATCH },
	{ ABI_HELPER_CTX, NULL, VM_RET_CTX, { VM_ARG_NONE } },
	{ ABI_HELPER_ADD_BY_STRING, add_by_string, VM_RET_VALUE,
	  { VM_ARG_MAP, VM_ARG_ANY, VM_ARG_ANY, VM_ARG_ANY, VM_ARG_ANY } },
	{ BPF_FUNC_get_current_uid_gid, uid_gid, VM_RET_VALUE, { VM_ARG_NONE } },
	{ BPF_FUNC_get_smp_processor_id, cpu, VM_RET_VALUE, { VM_ARG_NONE } },
	{ BPF_FUNC_get_current_comm, comm, VM_RET_VALUE, INTO },
	{ BPF_FUNC_ringbuf_output, ring_output, VM_RET_VALUE, { VM_ARG_MAP, VM_ARG_READ, VM_ARG_SIZE, VM_ARG_ANY } },
	{ BPF_FUNC_ringbuf_query, ring_query, VM_RET_VALUE, { VM_ARG_MAP, VM_ARG_ANY } },
	{ ABI_HELPER_RECORD, record, VM_RET_VALUE, { VM_ARG_MAP, VM_ARG_WRITE, VM_ARG_SIZE, VM_ARG_ANY, VM_ARG_ANY } },
	{ ABI_HELPER_PATH, path, VM_RET_VALUE, INTO_FROM },
	{ ABI_HELPER_PARENT, parent, VM_RET_VALUE, { VM_ARG_NONE } },
	{ ABI_HELPER_THREAD_TIME, thread_time, VM_RET_VALUE, { VM_ARG_NONE } },
	{ ABI_HELPER_SELF, self, VM_RET_VALUE, { VM_ARG_ANY } },
	{ ABI_HELPER_PROGENYOF, progenyof, VM_RET_VALUE, { VM_ARG_ANY } },
	{ BPF_FUNC_get_prandom_u32, prandom, VM_RET_VALUE, { VM_ARG_NONE } },
	{ ABI_HELPER_STACK, stack_number, VM_RET_VALUE, { VM_ARG_MAP, VM_ARG_ANY, VM_ARG_ANY, VM_ARG_ANY } },
	{ ABI_HELPER_STRCMP, compare_strings, VM_RET_VALUE, { VM_ARG_READ, VM_ARG_SIZE, VM_ARG_READ, VM_ARG_SIZE } },
	{ ABI_HELPER_QUANTIZE, quantize, VM_RET_VALUE, { VM_ARG_ANY } },
	{ ABI_HELPER_VALUE, value, VM_RET_VALUE, { VM_ARG_WRITE, VM_ARG_SIZE, VM_ARG_ANY, VM_ARG_ANY, VM_ARG_ANY } },
	{ ABI_HELPER_INTEGER, integer, VM_RET_VALUE, { VM_ARG_WRITE, VM_ARG_SIZE, VM_ARG_ANY, VM_ARG_ANY, VM_ARG_ANY } },
	{ BPF_FUNC_send_signal, send_signal, VM_RET_VALUE, { VM_ARG_ANY } },
};
const uint32_t shm_nhelpers = sizeof(shm_helpers) / sizeof(*shm_helpers);
