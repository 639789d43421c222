/*
 * A session's shared memory as one process uses it: the maps of abi/segment.h for programs that run in vm/, and
 * the kernel's helpers over them.
 *
 * The layout is copied from the image once, checked, and never read again, so what others write to the data can cause
 * wrong results but no access outside of it.  No function here waits, except briefly for a bucket's lock; only
 * shm_open_segment and shm_run_init allocate.
 */
#ifndef DTAP_VM_SHM_H
#define DTAP_VM_SHM_H

#include "abi/segment.h"
#include "base/cookie.h"
#include "vm/vm.h"

struct shm;
struct shm_stacks;
struct shm_run;

/*
 * Reads values of the traced language: ABI_HELPER_VALUE, whose arguments it has, so that the helper only jumps to it.  @size is
 * not 0; after a fault @dst is zero.  Preserves errno.
 */
struct shm_values {
	uint64_t (*value)(uint64_t dst, uint64_t size, uint64_t what, uint64_t object, uint64_t name, struct vm_thread *t);
	/* ABI_HELPER_INTEGER; @size is 16. */
	uint64_t (*integer)(uint64_t dst, uint64_t size, uint64_t what, uint64_t object, uint64_t name, struct vm_thread *t);
};

/* Flags of a segment whose programs ask for what is only known while an event happens: they cannot be run for it later. */
enum {
	SHM_NOW = ABI_SEGMENT_STACKS | ABI_SEGMENT_PYTHON | ABI_SEGMENT_VALUES | ABI_SEGMENT_TASKS | ABI_SEGMENT_VTIME,
};

struct shm_map {
	enum abi_map_kind kind;
	uint32_t key_size, value_size, max_entries;
	uint64_t off, size;
	/* Tables: */
	uint32_t mask;			/* buckets - 1 */
	uint32_t stride;
	uint64_t locks_off, elems_off;	/* from the table's start */
	uint32_t classes;		/* from this one on so many are the tables of one aggregation by string, at most */
};

struct shm {
	const uint8_t *image;
	uint8_t *data;
	const struct abi_clock *clock;	/* in the data; the tracer uses its own copy */
	uint64_t image_size, data_size, lanes_off, lane_size;
	uint32_t nmaps, nlanes, nprogs, nfires, nwanted;
	uint32_t flags;			/* ABI_SEGMENT_* */
	const char *texts;		/* in the image; the last byte is NUL */
	uint32_t texts_size;		/* bytes; 0: there are none */
	const struct shm_map *probes;	/* the probe table, if processes can add entries after the image's, or NULL */
	uint32_t nprobes;		/* entries in the image */
	const struct shm_map *ranges, *unwind;	/* of struct abi_image; both or neither are NULL */
	bool other_pids;		/* in another pid namespace than the tracer's: other pids mean nothing here */
	bool no_memory;			/* system calls that read memory are forbidden in this process (vm/memory.h) */
	const struct abi_prog *progs;	/* in the image */
	const struct abi_fire *fires;
	const struct abi_wanted *wanted;
	struct shm_map *maps;
	struct vm_map *rows;		/* for struct vm_spec: one row for each map, then one for the whole data */
	uint32_t nrows;
};

/* Indexes into vm_thread.values. */
enum {
	SHM_SCRATCH,			/* address of the lane's scratch memory; 0: none */
	SHM_TASK,			/* as from get_current_pid_tgid: pid in the upper half, tid in the lower */
	SHM_LANE,			/* address of the lane */
	SHM_RECENT,			/* shm_run.recent */
};

/* A cache entry: where a string was found before.  Only a hint, because another string may be at the address now. */
struct shm_cached {
	uint64_t address;
	uint32_t elem;			/* the element's number */
	uint32_t map;			/* the map that has the element */
};

enum { SHM_CACHED = 8192 };

/*
 * The same, by the address of an object that refers to the string object.  This is more than a hint: while a struct
 * shm_object exists, its creator keeps the object alive and unchanged, so the address identifies the string.
 */
struct shm_object {
	uint64_t owner, object;
	uint8_t *elem;
	uint32_t given_back;		/* abi_lane.given_back when the entry was made */
	uint16_t value;			/* from the element to its value */
	uint16_t map;			/* the first map of the aggregation */
};
_Static_assert(sizeof(struct shm_object) == 32, "two lie in a cache line");

enum { SHM_OBJECTS = 32768 };

/*
 * Elements of a lane's table, or NULL: the one found last, and one that was removed but is left dead in the index, where
 * its key finds it again (enum abi_elem_state).  @waits: see free_zeros() in helpers.c.
 */
struct shm_recent {
	struct abi_elem *found, *dead;
	uint64_t waits;
};

/* One user of a lane: its struct vm_thread and the state of the helpers.  Private to the process. */
struct shm_run {
	struct vm_thread thread;	/* user: this struct */
	const struct shm *shm;
	uint8_t *lane;
	uint32_t number;		/* of the lane */
	uint32_t cpu;			/* 1 + the processor's number when the time was last asked for; 0: unknown */
	bool running;
	bool is_tracer;			/* programs can read only the segment and the tracer's command line */
	bool is_alive;			/* not of a program: what it reads is known to be readable (agent/object.h) */
	uint64_t signals;		/* to send to this process after the program: bit n - 1 for signal n */
	uint64_t at_ns;			/* the time of an event that is run for later; 0: now */
	uint64_t random;		/* state of rand(); 0: not seeded */
	const uint64_t *strings;	/* addresses of strings that are known to be readable and end in a NUL */
	uint32_t nstrings;		/* number of strings */
	struct shm_cached *cache;	/* for add.c: SHM_CACHED entries; NULL: out of memory */
	struct shm_recent *recent;	/* by map, for helpers.c; NULL: out of memory */
	struct shm_object *objects;	/* for add.c: SHM_OBJECTS entries; NULL: out of memory */
	uint64_t *others;		/* for add.c: of each of these entries a second object of the owner's, or 0; NULL: the same */
	uint64_t ring_ready;		/* the ring position up to which memory is known to be present */
	uint64_t ring_since, ring_released;	/* from which on it was made so when abi_lane.released was that */
	struct shm_stacks *stacks;	/* vm/stack.h; NULL: no stacks.  Owned by the caller */
	const struct shm_values *values;	/* NULL: there are none */
	/* Called with what the kernel has copied for memory_read() and memory_read_string(); NULL: nobody wants to know. */
	void (*note)(uint64_t addr, const void *copy, uint64_t size);
	uint64_t (*thread_time)(void);	/* for vtimestamp; NULL: the thread's CPU time */
	struct cookie_fd wake;		/* a socket; a write to it wakes the tracer */
};

/*
 * Use the segment mapped at @image and @data.  Nobody may be able to write to the image.  0; -EINVAL and a reason in
 * *why when it is not a valid segment; -ENOMEM.
 */
int shm_open_segment(const void *image, uint64_t image_size, void *data, uint64_t data_size, struct shm *ret,
		     const char **why);
void shm_fini(struct shm *s);		/* unmaps neither */

/* The helpers that programs may call, for struct vm_spec. */
extern const struct vm_helper shm_helpers[];
extern const uint32_t shm_nhelpers;

/* Load program @prog of the image with vm_spec's @budget; errors as from vm_load. */
int shm_load(const struct shm *s, uint32_t prog, uint64_t budget, struct vm_prog **ret, struct vm_error *err);

/*
 * Budgets of instructions.  In the tracer, where no program waits for it, the loops of a program may take a large part
 * of a second, as in the kernel (8 million turns there); in a target less.
 */
enum { SHM_BUDGET_TARGET = 1 << 28 };
#define SHM_BUDGET_TRACER ((uint64_t)1 << 31)

/*
 * Take lane @number (the tracer's is 0) or, if it is negative, any lane, for the process @pid, which started at
 * @start.  The lane of a process that has ended is reused; its counts are kept.  0, or -EAGAIN when all lanes are
 * taken.
 */
int shm_run_init(struct shm_run *r, const struct shm *s, int number, uint32_t pid, uint64_t start);
void shm_run_fini(struct shm_run *r);	/* give the lane back */

/*
 * Marks the holder of a shared table's lock as one of another pid namespace: whether it is alive cannot be checked.
 */
#define SHM_OTHER_PIDS 0x80000000U
static inline uint32_t shm_locker(const struct shm_run *r)
{
	return r->shm->other_pids ? SHM_OTHER_PIDS | (uint32_t)(r->thread.values[SHM_TASK] >> 32) :
				    (uint32_t)r->thread.values[SHM_TASK];
}

/* Set the thread that runs programs from now on. */
static inline void shm_set_tid(struct shm_run *r, uint32_t tid)
{
	uint64_t task = (r->thread.values[SHM_TASK] & ~(uint64_t)UINT32_MAX) | tid;

	/* Stored whole, as programs load it: a load of more than was stored waits for the store. */
	__asm__("" : "+r"(task));
	r->thread.values[SHM_TASK] = task;
}

/*
 * Add an entry to the probe table for a function that the pattern in entry @probe matched (abi_data.named).  Returns
 * its number, or @probe when there is no room.  @module and @function are cut to the lengths of probe names.
 */
uint32_t shm_name_probe(const struct shm *s, uint32_t probe, const char *module, const char *function);

/*
 * Copy and check entry @index of the probe table, which a process wrote for a function that a pattern matched.  The
 * texts of *ret end in a NUL.  False: the entry is not valid.
 */
bool shm_named(const struct shm *s, uint32_t index, struct abi_probe *ret);

/* What the tracer says to all processes, at the data's start. */
static inline const struct abi_control *shm_control(const struct shm *s)
{
	return (const struct abi_control *)(const void *)s->data;
}

/* Does the tracer want its programs run now? */
static inline __attribute__((always_inline)) bool shm_is_active(const struct shm *s)
{
	return shm_control(s)->state == ABI_STATE_ACTIVE;
}

/* Is @map a table of a lane with a value for each thread, and is there a word at byte @at of it? */
bool shm_has_thread_word(const struct shm *s, uint32_t map, uint32_t at);

/* The words of the value of @e, an element of the table @m. */
static inline uint64_t *shm_words(const struct shm_map *m, struct abi_elem *e)
{
	return (uint64_t *)(void *)((uint8_t *)(e + 1) + m->key_size);
}

/*
 * The number of @v's bucket of quantize(), below 127: 63 plus or minus the number of bits of its magnitude; INT64_MIN shares the
 * last bucket.
 */
static inline unsigned shm_quantize(int64_t v)
{
	uint64_t magnitude = v < 0 ? -(uint64_t)v : (uint64_t)v;
	unsigned bits = magnitude ? 64 - (unsigned)__builtin_clzll(magnitude) : 0;

	bits -= bits == 64;
	return v < 0 ? 63 - bits : 63 + bits;
}

/* Run @p.  False: a program is running on this lane already, or @p failed (which is counted). */
bool shm_run_prog(struct shm_run *r, const struct vm_prog *p, uint64_t ctx[11]);

/* Set the offset from the thread pointer to each thread's struct rseq. */
void shm_use_rseq(long off);

/* ns of CLOCK_MONOTONIC; *cpu: 1 + the processor's number if that comes with it, else 0. */
uint64_t shm_now_and_cpu(const struct shm *s, uint32_t *cpu);
uint64_t shm_now(const struct shm *s);

/* What a record has, for ABI_HELPER_RECORD and shm_record(). */
struct shm_record {
	uint32_t size, fields, strsize;	/* of the largest such record; slots; the most bytes of a string, with the NUL */
	uint64_t strings;		/* bits of the slots that have strings */
	/* For shm_record(): abi_record.rec; what the slots have, enum abi_field; a map of the kind ABI_MAP_OUT. */
	uint32_t id;
	uint8_t from[ABI_FIELD_MOST];
	const struct shm_map *out;
};

/*
 * ABI_HELPER_RECORD for an event of a code object, without a program: its @file and @name are readable and end in a NUL, if the record
 * has them.  False: nothing was done, since it is not as simple: no room, a long string.
 */
bool shm_record(struct shm_run *r, const struct shm_record *rec, uint64_t probe, uint64_t file, uint64_t name, uint64_t line);

/* --- for the tracer, which reads with reader.h --------------------------------------------------------- */

/* Set @key of a shared table.  0, -E2BIG, or -ENOENT if @map is not one. */
int shm_map_set(const struct shm *s, uint32_t map, const void *key, const void *value);

/* Remove @key, in all lanes.  0 or -ENOENT; an array's element becomes zero. */
int shm_map_delete(const struct shm *s, uint32_t map, const void *key);

/* Remove all keys of @map, a lane's table, in lane @n. */
void shm_map_clear(const struct shm *s, uint32_t map, uint32_t n);

/* Lane @n; @n must be below nlanes. */
uint8_t *shm_lane(const struct shm *s, uint32_t n);

/* Is a live process running a program? */
bool shm_busy(const struct shm *s);

#endif
