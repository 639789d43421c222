#include "vm/shm.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "arch/cycles.h"
#include "vm/add.h"
#include "vm/calls.h"
#include "vm/enter.h"
#include "vm/prog.h"
#include "vm/ring.h"
#include "abi/unwind.h"
#include "vm/table.h"

/* --- the image ---------------------------------------------------------------------------------------- */

static bool within(uint64_t off, uint64_t size, uint64_t all)
{
	return off <= all && size <= all - off;
}

static bool power_of_two(uint64_t n)
{
	return n && !(n & (n - 1));
}

/* The size in bytes of a table with these dimensions; the offsets of its parts go to @m. */
static uint64_t table_layout(const struct abi_map *from, struct shm_map *m)
{
	uint64_t index = (uint64_t)from->buckets * 4;

	m->mask = from->buckets - 1;
	m->stride = from->stride;
	m->locks_off = sizeof(struct abi_table) + index;
	m->elems_off = m->locks_off + (from->kind == ABI_MAP_SHARED_HASH ? index : 0);
	m->elems_off = (m->elems_off + 63) & ~(uint64_t)63;
	return m->elems_off + (uint64_t)from->max_entries * from->stride;
}

static bool table_good(const struct abi_map *from, struct shm_map *m)
{
	uint64_t elem = sizeof(struct abi_elem) + (uint64_t)from->key_size + from->value_size;

	return power_of_two(from->buckets) && from->max_entries && from->key_size && from->key_size % 8 == 0 &&
	       from->value_size && from->stride % 8 == 0 && from->stride >= elem &&
	       (from->kind != ABI_MAP_LANE_HASH || from->buckets > from->max_entries) &&
	       from->max_entries < UINT32_MAX - 1 && table_layout(from, m) <= from->size;
}

/* Check row @from and copy it to @m.  False: it is not valid. */
static bool map_good(const struct shm *s, const struct abi_map *from, struct shm_map *m)
{
	uint64_t values = (uint64_t)from->value_size * from->max_entries;

	m->kind = (enum abi_map_kind)from->kind;
	m->key_size = from->key_size;
	m->value_size = from->value_size;
	m->max_entries = from->max_entries;
	m->off = from->off;
	m->size = from->size;
	if (from->kind == ABI_MAP_NONE)
		return true;
	if (from->off % 8 || !from->size)
		return false;
	switch (from->kind) {
	case ABI_MAP_IMAGE:
		return within(from->off, from->size, s->image_size) && from->value_size && values <= from->size &&
		       from->key_size == 4;
	case ABI_MAP_ARRAY:
		return within(from->off, from->size, s->lanes_off) && from->value_size && values <= from->size &&
		       from->key_size == 4;
	case ABI_MAP_SHARED_HASH:
		return within(from->off, from->size, s->lanes_off) && from->off >= sizeof(struct abi_data) &&
		       table_good(from, m);
	}
	if (!within(from->off, from->size, s->lane_size) || from->off < sizeof(struct abi_lane))
		return false;
	switch (from->kind) {
	case ABI_MAP_OUT:
		return power_of_two(from->max_entries) && from->max_entries <= from->size && from->max_entries >= 16384;
	case ABI_MAP_SCRATCH:
	case ABI_MAP_LANE_ARRAY:
		return from->key_size == 4 && from->value_size && from->value_size <= from->size;
	case ABI_MAP_LANE_HASH:
		return table_good(from, m);
	case ABI_MAP_LANE_BUFFERS:
		return from->key_size == 4 && from->value_size >= 8 && from->value_size % 8 == 0 && values <= from->size;
	default:
		return false;
	}
}

static const char *header_wrong(const struct shm *s, const struct abi_image *h)
{
	if (s->image_size < sizeof(*h) || h->magic != ABI_SEGMENT_MAGIC)
		return "no segment of dtap's";
	if (h->version != ABI_VERSION)
		return "the segment is of another version of dtap";
	if (h->size != s->image_size || h->data_size != s->data_size)
		return "the segment has another size than it says";
	if (!h->nlanes || h->nlanes > ABI_MAX_LANES || h->nmaps > ABI_MAX_MAPS || h->nprogs > ABI_MAX_PROGS ||
	    h->nfires > ABI_MAX_PROGS * 8 || h->nwanted > ABI_MAX_PROGS * 8)
		return "the segment has impossible numbers";
	if (h->lanes_off % ABI_ALIGN || h->lane_size % ABI_ALIGN || h->lane_size < sizeof(struct abi_lane) ||
	    h->lanes_off < sizeof(struct abi_data) || h->lane_size > UINT64_MAX / ABI_MAX_LANES ||
	    !within(h->lanes_off, h->lane_size * h->nlanes, s->data_size))
		return "the segment's lanes are outside of it";
	if (h->texts_size && (!within(h->texts_off, h->texts_size, s->image_size) ||
			      s->image[h->texts_off + h->texts_size - 1]))
		return "the segment's texts are outside of it";
	return NULL;
}

/* Set the maps for native stacks, if both are valid. */
static void find_unwind(struct shm *s, const struct abi_image *h)
{
	const struct shm_map *r, *u;

	if (!h->ranges || !h->unwind || h->ranges > s->nmaps || h->unwind > s->nmaps)
		return;
	r = &s->maps[h->ranges - 1];
	u = &s->maps[h->unwind - 1];
	if (r->kind != ABI_MAP_SHARED_HASH || r->key_size != sizeof(struct abi_process_key) ||
	    r->value_size != sizeof(struct abi_ranges) || u->kind != ABI_MAP_ARRAY || u->value_size != sizeof(struct abi_unwind))
		return;
	s->ranges = r;
	s->unwind = u;
}

/* Set the probe table, if processes can add entries for functions. */
static void find_probes(struct shm *s, const struct abi_image *h)
{
	const struct shm_map *m;

	if (!h->probes || h->probes > s->nmaps)
		return;
	m = &s->maps[h->probes - 1];
	if (m->kind != ABI_MAP_ARRAY || m->value_size != sizeof(struct abi_probe) || m->off % 8 || h->nprobes > m->max_entries)
		return;
	s->probes = m;
	s->nprobes = h->nprobes;
}

/* Where compiled code finds the element of a lane's map, as map_lookup() does (helpers.c). */
static void set_quick(struct vm_map *row, const struct shm_map *m, uint32_t number)
{
	if (m->kind == ABI_MAP_SCRATCH || m->kind == ABI_MAP_LANE_ARRAY) {
		row->quick = VM_QUICK_FIXED;
		row->word = SHM_LANE;
		row->off = m->off;
	} else if (m->kind == ABI_MAP_LANE_HASH) {
		row->quick = VM_QUICK_LAST;
		row->word = SHM_RECENT;
		row->off = number * sizeof(struct shm_recent) + offsetof(struct shm_recent, found);
	}
}

/* Can @m be among the tables of an aggregation by string? */
static bool is_class(const struct shm_map *m)
{
	return m->kind == ABI_MAP_LANE_HASH && m->value_size >= 8 && m->key_size <= ABI_ADD_STRING_MAX;
}

/* Asked whenever a string is new: so from the last map to the first, once. */
static void find_classes(struct shm *s)
{
	for (uint32_t k = s->nmaps; k--;) {
		struct shm_map *m = &s->maps[k];
		bool goes_on = k + 1 < s->nmaps && m[1].value_size == m->value_size && m[1].key_size >= m->key_size;

		m->classes = is_class(m) ? 1 + (goes_on ? m[1].classes : 0) : 0;
	}
}

int shm_open_segment(const void *image, uint64_t image_size, void *data, uint64_t data_size, struct shm *ret,
		     const char **why)
{
	const struct abi_image *h = image;
	struct shm s = { .image = image, .data = data, .image_size = image_size, .data_size = data_size };
	const struct abi_map *maps = (const struct abi_map *)(h + 1);
	uint64_t tables;

	*why = header_wrong(&s, h);
	if (*why)
		return -EINVAL;
	tables = sizeof(*h) + (uint64_t)h->nmaps * sizeof(struct abi_map) +
		 (uint64_t)h->nprogs * sizeof(struct abi_prog) + (uint64_t)h->nfires * sizeof(struct abi_fire) +
		 (uint64_t)h->nwanted * sizeof(struct abi_wanted);
	if (tables > image_size) {
		*why = "the segment's tables are outside of it";
		return -EINVAL;
	}
	s.clock = &((const struct abi_data *)data)->clock;
	s.nmaps = h->nmaps;
	s.nlanes = h->nlanes;
	s.nprogs = h->nprogs;
	s.nfires = h->nfires;
	s.nwanted = h->nwanted;
	s.flags = h->flags;
	s.texts = (const char *)s.image + h->texts_off;
	s.texts_size = h->texts_size;
	s.lanes_off = h->lanes_off;
	s.lane_size = h->lane_size;
	s.progs = (const struct abi_prog *)(maps + h->nmaps);
	s.fires = (const struct abi_fire *)(s.progs + h->nprogs);
	s.wanted = (const struct abi_wanted *)(s.fires + h->nfires);
	s.maps = calloc((size_t)s.nmaps + 1, sizeof(*s.maps));
	s.rows = calloc((size_t)s.nmaps + 1, sizeof(*s.rows));
	s.nrows = s.nmaps + 1;
	if (!s.maps || !s.rows) {
		shm_fini(&s);
		*why = "out of memory";
		return -ENOMEM;
	}
	for (uint32_t k = 0; k < s.nmaps; k++) {
		struct vm_map *row = &s.rows[k];

		if (!map_good(&s, &maps[k], &s.maps[k])) {
			shm_fini(&s);
			*why = "the segment has an impossible map";
			return -EINVAL;
		}
		row->handle = &s.maps[k];
		row->walked = maps[k].kind == ABI_MAP_LANE_HASH || maps[k].kind == ABI_MAP_SHARED_HASH;
		row->key_size = maps[k].key_size;
		row->value_size = maps[k].value_size;
		set_quick(row, &s.maps[k], k);
		if (maps[k].kind == ABI_MAP_IMAGE) {
			row->base = (void *)(uintptr_t)(s.image + maps[k].off);
			row->size = maps[k].size;
			row->readonly = true;
		} else if (maps[k].kind == ABI_MAP_ARRAY) {
			row->base = s.data + maps[k].off;
			row->size = maps[k].size;
		}
	}
	s.rows[s.nmaps] = (struct vm_map){ .base = s.data, .size = s.data_size };
	find_unwind(&s, h);
	find_probes(&s, h);
	find_classes(&s);
	*ret = s;
	return 0;
}

static struct abi_probe *probe_entry(const struct shm *s, uint32_t index)
{
	return (struct abi_probe *)(void *)(s->data + s->probes->off) + index;
}

static void put_name(char *to, size_t size, const char *text)
{
	size_t n = strlen(text);

	n = n < size - 1 ? n : size - 1;
	memcpy(to, text, n);
	memset(to + n, 0, size - n);
}

uint32_t shm_name_probe(const struct shm *s, uint32_t probe, const char *module, const char *function)
{
	uint32_t *named = &((struct abi_data *)(void *)s->data)->named, n = __atomic_load_n(named, __ATOMIC_RELAXED);
	struct abi_probe *p;

	if (!s->probes || probe >= s->nprobes)
		return probe;
	do {
		if (n >= s->probes->max_entries - s->nprobes)
			return probe;
	} while (!__atomic_compare_exchange_n(named, &n, n + 1, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
	p = probe_entry(s, s->nprobes + n);
	*p = *probe_entry(s, probe);
	p->pattern = 1 + probe;
	put_name(p->mod, sizeof(p->mod), module);
	put_name(p->func, sizeof(p->func), function);
	return s->nprobes + n;
}

bool shm_named(const struct shm *s, uint32_t index, struct abi_probe *ret)
{
	if (!s->probes || index < s->nprobes || index >= s->probes->max_entries)
		return false;
	*ret = *probe_entry(s, index);
	return ret->pattern && ret->pattern <= s->nprobes && memchr(ret->mod, 0, sizeof(ret->mod)) &&
	       memchr(ret->func, 0, sizeof(ret->func));
}

bool shm_has_thread_word(const struct shm *s, uint32_t map, uint32_t at)
{
	const struct shm_map *m = map < s->nmaps ? &s->maps[map] : NULL;

	return m && m->kind == ABI_MAP_LANE_HASH && m->key_size == 8 && at % 8 == 0 && at + (uint64_t)8 <= m->value_size;
}

bool shm_good_tables(const struct shm *s, const struct shm_map *m, uint32_t classes)
{
	uint64_t first = (uint64_t)(m - s->maps);

	if (!classes || first >= s->nmaps || classes > s->nmaps - first)
		return false;
	for (uint32_t c = 0; c < classes; c++)
		if ((m[c].kind != ABI_MAP_LANE_HASH && (m[c].kind != ABI_MAP_LANE_ARRAY || classes != 1)) || m[c].value_size < 8 ||
		    sizeof(struct abi_elem) + m[c].key_size > UINT16_MAX)
			return false;
	return true;
}

void shm_fini(struct shm *s)
{
	free(s->maps);
	free(s->rows);
	s->maps = NULL;
	s->rows = NULL;
}

static bool next_element(void *handle, struct vm_thread *t, uint64_t from, struct vm_elem *ret)
{
	const struct shm_map *m = handle;
	const struct shm_run *r = t->user;

	return table_next(m, m->kind == ABI_MAP_LANE_HASH ? r->lane : r->shm->data, from, ret);
}

int shm_load(const struct shm *s, uint32_t prog, uint64_t budget, struct vm_prog **ret, struct vm_error *err)
{
	const struct abi_prog *p = &s->progs[prog];
	struct vm_spec spec = {
		.maps = s->rows, .nmaps = s->nrows,
		.helpers = shm_helpers, .nhelpers = shm_nhelpers,
		.ctx_size = 11 * sizeof(uint64_t), .next = next_element, .budget = budget,
	};

	for (uint32_t k = 0; k < s->nmaps; k++) {
		if (s->maps[k].kind == ABI_MAP_SCRATCH)
			spec.scratch = s->maps[k].value_size & ~(uint32_t)7;
	}
	err->insn = 0;
	strcpy(err->text, "outside of the segment");
	if (prog >= s->nprogs || p->off % 8 || !within(p->off, (uint64_t)p->ninsns * sizeof(struct bpf_insn), s->image_size))
		return -EINVAL;
	spec.ninsns = p->ninsns;
	spec.insns = (const struct bpf_insn *)(s->image + p->off);
	return vm_load(&spec, ret, err);
}

/* --- lanes -------------------------------------------------------------------------------------------- */

static struct abi_data *data_of(const struct shm *s)
{
	return (struct abi_data *)s->data;
}

uint8_t *shm_lane(const struct shm *s, uint32_t n)
{
	return s->data + s->lanes_off + (uint64_t)n * s->lane_size;
}

/* A run that was cut off did not release its buffers. */
static void release_buffers(const struct shm *s, uint8_t *lane)
{
	for (uint32_t k = 0; k < s->nmaps; k++) {
		const struct shm_map *m = &s->maps[k];

		for (uint32_t n = 0; m->kind == ABI_MAP_LANE_BUFFERS && n < m->max_entries; n++)
			*(uint64_t *)(lane + m->off + (uint64_t)n * m->value_size) = 0;
	}
}

/* A process that was killed can have left any update of the lane incomplete. */
static void repair(const struct shm *s, uint8_t *lane)
{
	struct abi_lane *l = (struct abi_lane *)lane;

	l->busy = 0;
	release_buffers(s, lane);
	if (l->changing) {
		for (uint32_t k = 0; k < s->nmaps; k++) {
			if (s->maps[k].kind == ABI_MAP_LANE_HASH)
				lane_table_repair(&s->maps[k], lane);
		}
		l->changing = 0;
	}
}

/* Has process @pid ended?  False if this process may not check. */
static bool has_died(uint32_t pid)
{
	return calls_may(ABI_CALLS_SIGNAL) && kill((pid_t)pid, 0) < 0 && errno == ESRCH;
}

static uint32_t lanes_used(const struct shm *s)
{
	uint32_t high = __atomic_load_n(&data_of(s)->lanes_high, __ATOMIC_ACQUIRE);

	return high < s->nlanes ? high : s->nlanes;
}

/* Take lane @n if it has no owner or, with @inherit, no live owner. */
static bool take_lane(const struct shm *s, uint32_t n, bool inherit, uint32_t pid, uint64_t start)
{
	struct abi_lane *l = (struct abi_lane *)shm_lane(s, n);
	struct abi_data *d = data_of(s);
	uint32_t owner = __atomic_load_n(&l->owner, __ATOMIC_ACQUIRE), high;

	if (owner) {
		bool stale = owner == pid && l->owner_start != start;

		if (!inherit || s->other_pids || (!stale && (owner == pid || !has_died(owner))))
			return false;
	}
	if (!__atomic_compare_exchange_n(&l->owner, &owner, pid, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
		return false;
	l->owner_start = start;
	for (uint32_t k = 0; owner && k < s->nmaps; k++)
		if (s->maps[k].kind == ABI_MAP_LANE_HASH)
			lane_table_expect_dead(&s->maps[k], (uint8_t *)l);
	repair(s, (uint8_t *)l);
	high = __atomic_load_n(&d->lanes_high, __ATOMIC_RELAXED);
	while (high <= n && !__atomic_compare_exchange_n(&d->lanes_high, &high, n + 1, false, __ATOMIC_ACQ_REL,
							 __ATOMIC_RELAXED))
		;
	return true;
}

int shm_run_init(struct shm_run *r, const struct shm *s, int number, uint32_t pid, uint64_t start)
{
	uint32_t n = (uint32_t)number;
	bool taken = number >= 0 && n < s->nlanes && take_lane(s, n, true, pid, start);

	/* Before a new one those that were used: a lane keeps the memory that its owners have touched. */
	for (int tries = 0; number < 0 && !taken && tries < 3; tries++) {
		uint32_t end = tries < 2 ? lanes_used(s) : s->nlanes;

		for (n = 1; !taken && n < end; n++)
			taken = take_lane(s, n, tries, pid, start);
		n--;
	}
	if (!taken)
		return -EAGAIN;
	memset(r, 0, sizeof(*r));
	r->thread.user = r;
	r->shm = s;
	r->lane = shm_lane(s, n);
	r->number = n;
	r->is_tracer = n == 0;
	r->thread.values[SHM_TASK] = (uint64_t)pid << 32 | pid;
	for (uint32_t k = 0; k < s->nmaps; k++) {
		if (s->maps[k].kind == ABI_MAP_SCRATCH)
			r->thread.values[SHM_SCRATCH] = (uint64_t)(uintptr_t)(r->lane + s->maps[k].off);
	}
	r->wake.fd = -1;
	r->cache = calloc(SHM_CACHED, sizeof(*r->cache));
	r->objects = calloc(SHM_OBJECTS, sizeof(*r->objects));
	r->others = calloc(SHM_OBJECTS, sizeof(*r->others));
	r->recent = calloc(s->nmaps, sizeof(*r->recent));
	r->thread.values[SHM_LANE] = (uint64_t)(uintptr_t)r->lane;
	r->thread.values[SHM_RECENT] = (uint64_t)(uintptr_t)r->recent;
	return 0;
}

void shm_run_fini(struct shm_run *r)
{
	for (uint32_t k = 0; r->lane && r->recent && k < r->shm->nmaps; k++)
		if (r->recent[k].dead)
			lane_table_bury(&r->shm->maps[k], r->lane, r->recent[k].dead);
	if (r->lane)
		__atomic_store_n(&((struct abi_lane *)r->lane)->owner, 0, __ATOMIC_RELEASE);
	r->lane = NULL;
	free(r->cache);
	free(r->objects);
	free(r->others);
	free(r->recent);
	r->cache = NULL;
	r->objects = NULL;
	r->others = NULL;
	r->recent = NULL;
}

/* Sent after the lane is released, because a signal may stop or end the process. */
void shm_run_signals(struct shm_run *r)
{
	uint64_t signals = r->signals;

	r->signals = 0;
	for (int k = 1; signals; k++, signals >>= 1)
		if (signals & 1 && calls_may(ABI_CALLS_SIGNAL))
			kill(getpid(), k);
}

void shm_run_failed(struct shm_run *r)
{
	release_buffers(r->shm, r->lane);
	__atomic_fetch_add(&data_of(r->shm)->failed_runs, 1, __ATOMIC_RELAXED);
}

bool shm_run_prog(struct shm_run *r, const struct vm_prog *p, uint64_t ctx[11])
{
	return shm_run_inline(r, p, ctx);
}

/* --- time --------------------------------------------------------------------------------------------- */

static uint64_t system_now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

static long rseq_off;

void shm_use_rseq(long off)
{
	rseq_off = off;
}

#if defined(__x86_64__)
/*
 * The cycle counter; *cpu becomes 1 + the processor's number, or 0.  RDTSCP returns both, but waits for all earlier
 * instructions, which takes twice as long as RDTSC.  The kernel keeps the processor's number in struct rseq as well;
 * where that is known, RDTSC does, which the processor may execute some instructions early.
 */
static inline uint64_t cycles(uint32_t *cpu)
{
	uint64_t tsc;
	int32_t id = -1;

	if (rseq_off)
		__asm__ volatile("movl %%fs:4(%1), %0" : "=r"(id) : "r"(rseq_off));	/* cpu_id */
	if (__builtin_expect(id >= 0, 1)) {
		*cpu = (uint32_t)id + 1;
		return arch_cycles();
	}
	tsc = __builtin_ia32_rdtscp(cpu);
	*cpu = (*cpu & 0xfff) + 1;	/* Linux keeps the number in the lowest 12 bits (VDSO_CPUNODE_BITS) */
	return tsc;
}
#elif defined(ARCH_CYCLES)
/* The counter; *cpu becomes 1 + the processor's number where the kernel keeps that in struct rseq, or 0. */
static inline uint64_t cycles(uint32_t *cpu)
{
	int32_t id = -1;

	if (rseq_off)
		id = *(const volatile int32_t *)((const char *)__builtin_thread_pointer() + rseq_off + 4);	/* cpu_id */
	*cpu = id >= 0 ? (uint32_t)id + 1 : 0;
	return arch_cycles();
}
#endif

#if defined(ARCH_CYCLES)
/* CLOCK_MONOTONIC from the cycle counter, which @read reads; false: not known, or just being set. */
static inline __attribute__((always_inline)) bool counted_now(const struct abi_clock *c,
							       uint64_t (*read)(uint32_t *cpu), uint32_t *cpu,
							       uint64_t *ns)
{
	uint32_t seq = __atomic_load_n(&c->seq, __ATOMIC_ACQUIRE);
	uint64_t tsc;

	if (__builtin_expect(seq & 1 || !__atomic_load_n(&c->usable, __ATOMIC_RELAXED), 0))
		return false;
	tsc = read(cpu);
	*ns = c->base_ns + (uint64_t)((unsigned __int128)(tsc - c->base_tsc) * c->mult >> 32);
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	return __builtin_expect(__atomic_load_n(&c->seq, __ATOMIC_RELAXED) == seq, 1);
}

/* When that has failed once: some times more, in case that it is being set, and then the system's clock. */
static __attribute__((noinline)) uint64_t now_again(const struct abi_clock *c, uint64_t (*read)(uint32_t *cpu),
						     uint32_t *cpu)
{
	uint64_t ns;

	for (int tries = 0; tries < 100 && __atomic_load_n(&c->usable, __ATOMIC_RELAXED); tries++)
		if (counted_now(c, read, cpu, &ns))
			return ns;
	if (cpu)
		*cpu = 0;
	return system_now();
}

static inline uint64_t cycles_alone(uint32_t *cpu)
{
	(void)cpu;
	return arch_cycles();
}
#endif

uint64_t shm_now_and_cpu(const struct shm *s, uint32_t *cpu)
{
#if defined(ARCH_CYCLES)
	uint64_t ns;

	if (__builtin_expect(counted_now(s->clock, cycles, cpu, &ns), 1))
		return ns;
	return now_again(s->clock, cycles, cpu);
#else
	(void)s;
	*cpu = 0;
	return system_now();
#endif
}

uint64_t shm_now(const struct shm *s)
{
#if defined(ARCH_CYCLES)
	uint64_t ns;

	if (__builtin_expect(counted_now(s->clock, cycles_alone, NULL, &ns), 1))
		return ns;
	return now_again(s->clock, cycles_alone, NULL);
#else
	(void)s;
	return system_now();
#endif
}

/* --- the tracer --------------------------------------------------------------------------------------- */

static void clear_words(void *at, uint32_t size)
{
	uint64_t *words = at;

	for (uint32_t k = 0; k < size / 8; k++)
		__atomic_store_n(&words[k], 0, __ATOMIC_RELAXED);
}

int shm_map_set(const struct shm *s, uint32_t map, const void *key, const void *value)
{
	const struct shm_map *m = &s->maps[map];

	if (m->kind != ABI_MAP_SHARED_HASH)
		return -ENOENT;
	return shared_table_put(m, s->data, key, value, BPF_ANY, (uint32_t)syscall(SYS_gettid));
}

int shm_map_delete(const struct shm *s, uint32_t map, const void *key)
{
	const struct shm_map *m = &s->maps[map];
	uint32_t at;
	int err = -ENOENT;

	switch (m->kind) {
	case ABI_MAP_SHARED_HASH:
		return shared_table_del(m, s->data, key, (uint32_t)syscall(SYS_gettid));
	case ABI_MAP_ARRAY:
		memcpy(&at, key, sizeof(at));
		if (at >= m->max_entries)
			return -ENOENT;
		clear_words(s->data + m->off + (uint64_t)at * m->value_size, m->value_size);
		return 0;
	case ABI_MAP_LANE_ARRAY:
	case ABI_MAP_LANE_HASH:
		for (uint32_t n = 0; n < lanes_used(s); n++) {
			if (m->kind == ABI_MAP_LANE_ARRAY)
				clear_words(shm_lane(s, n) + m->off, m->value_size);
			else if (lane_table_kill(m, shm_lane(s, n), key))
				continue;
			err = 0;
		}
		return err;
	default:
		return -ENOENT;
	}
}

void shm_map_clear(const struct shm *s, uint32_t map, uint32_t n)
{
	if (s->maps[map].kind == ABI_MAP_LANE_HASH)
		lane_table_kill_all(&s->maps[map], shm_lane(s, n));
}

bool shm_busy(const struct shm *s)
{
	for (uint32_t k = 1; k < lanes_used(s); k++) {
		const struct abi_lane *l = (const struct abi_lane *)shm_lane(s, k);
		uint32_t owner = __atomic_load_n(&l->owner, __ATOMIC_RELAXED);

		if (__atomic_load_n(&l->busy, __ATOMIC_ACQUIRE) && owner &&
		    !has_died(owner))
			return true;
	}
	return false;
}
