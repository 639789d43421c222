/*
 * A session's shared memory as one process uses it: the maps of abi/segment.h for programs that run in vm/, and
 * the kernel's helpers over them.
 *
 * What lies where is copied from the image once, checked, and never read again, so what others write to the
 * data can give wrong results but no access outside of it.  No function here waits but for a bucket's lock,
 * and that not for long; none allocates but shm_open and shm_run_init.
 */
#ifndef DTAP_VM_SHM_H
#define DTAP_VM_SHM_H

#include "abi/segment.h"
#include "base/cookie.h"
#include "vm/vm.h"

struct shm;
struct shm_stacks;

struct shm_map {
	enum abi_map_kind kind;
	uint32_t key_size, value_size, max_entries;
	uint64_t off, size;
	/* Tables: */
	uint32_t mask;			/* buckets - 1 */
	uint32_t stride;
	uint64_t locks_off, elems_off;	/* from the table's start */
};

/*
 * Reading a lane's ring: bytes read; how many they were when memory was last given back; up to how many written there
 * was memory made ahead of the writer; the seconds when some was given back and when there last was something to be read.
 */
struct shm_reader {
	uint64_t off, given_back, made;
	int64_t when, last;
};

struct shm {
	const uint8_t *image;
	uint8_t *data;
	uint64_t image_size, data_size, lanes_off, lane_size;
	uint32_t nmaps, nlanes, nprogs, nfires;
	uint32_t flags;			/* ABI_SEGMENT_* */
	const struct shm_map *ranges, *unwind;	/* those of struct abi_image, or both NULL */
	struct shm_reader *read;	/* by lane, the tracer's */
	bool other_pids;		/* this process is in another pid namespace than the tracer: it can ask after nobody */
	int punch_fd;			/* the tracer's: the data's file, to give memory of rings back; -1: leave it */
	const struct abi_prog *progs;	/* in the image */
	const struct abi_fire *fires;
	struct shm_map *maps;
	struct vm_map *rows;		/* for struct vm_spec: a row a map, then the whole data */
	uint32_t nrows;
};

/* What is in vm_thread.values. */
enum {
	SHM_SCRATCH,			/* address of the lane's scratch memory, 0: there is none */
	SHM_TASK,			/* as get_current_pid_tgid gives it: pid above, tid below */
};

/* Where a string was found before: a hint, since its address may be another string's now. */
struct shm_cached {
	uint64_t address;
	uint32_t elem;			/* its number ... */
	uint32_t map;			/* ... in this map */
};

enum { SHM_CACHED = 8192 };

/*
 * The same by an object that refers to the object whose string it is.  No hint: who has a struct shm_object keeps that
 * object alive and as it is, so its address means that string.
 */
struct shm_object {
	uint64_t owner, object;
	uint8_t *elem;
	uint32_t given_back;		/* the lane's when it was learned */
	uint16_t value;			/* from the element to its value */
	uint16_t map;			/* the first of those that are counted in */
};
_Static_assert(sizeof(struct shm_object) == 32, "two lie in a cache line");

enum { SHM_OBJECTS = 32768 };

/*
 * One user of a lane: its struct vm_thread and what helpers must know.  Of the process, not shared.
 */
struct shm_run {
	struct vm_thread thread;	/* user: this struct */
	const struct shm *shm;
	uint8_t *lane;
	uint32_t number;		/* of the lane */
	uint32_t cpu;			/* 1 + the processor's number when the time was last asked for; 0: unknown */
	bool running;
	bool is_tracer;			/* no memory but the segment's, and its own arguments, can be read */
	uint64_t signals;		/* to be sent to this process when the program has ended: bit n - 1 for signal n */
	uint64_t random;		/* of rand(): the last number's state; 0: none yet */
	const uint64_t *strings;	/* addresses of strings that are known to be good and end in a NUL ... */
	uint32_t nstrings;		/* ... so many */
	struct shm_cached *cache;	/* add.c's, SHM_CACHED of them; NULL: there was no memory for it */
	struct shm_object *objects;	/* likewise, SHM_OBJECTS */
	uint64_t ring_ready;		/* bytes ever written to the ring for which there is memory, as far as is known */
	struct shm_stacks *stacks;	/* vm/stack.h; NULL: there are no stacks.  The caller's */
	struct cookie_fd wake;		/* a socket to be written to when the tracer is to look */
};

/*
 * Use the segment mapped at @image and @data.  The image must be one that nobody can write.  0; -EINVAL and a
 * reason in *why when it is none; -ENOMEM.
 */
int shm_open_segment(const void *image, uint64_t image_size, void *data, uint64_t data_size, struct shm *ret,
		     const char **why);
void shm_fini(struct shm *s);		/* unmaps nothing */

/* The helpers that programs may call, for struct vm_spec. */
extern const struct vm_helper shm_helpers[];
extern const uint32_t shm_nhelpers;

/* Load program @prog of the image with vm_spec's @budget; errors as of vm_load. */
int shm_load(const struct shm *s, uint32_t prog, uint64_t budget, struct vm_prog **ret, struct vm_error *err);

/*
 * Budgets: the loops of a program may take a good part of a second, as in the kernel (8 million turns there), where
 * only the tracer waits for it, and less in a target.
 */
enum { SHM_BUDGET_TARGET = 1 << 28 };
#define SHM_BUDGET_TRACER ((uint64_t)1 << 31)

/*
 * Take lane @number (the tracer: 0) or, with a negative one, any for the process @pid, which started at @start;
 * from a process that has ended it is inherited with all it counted.  0, -EAGAIN when all are taken.
 */
int shm_run_init(struct shm_run *r, const struct shm *s, int number, uint32_t pid, uint64_t start);
void shm_run_fini(struct shm_run *r);	/* give the lane back */

/* Who holds a lock of a shared table; nobody can ask whether those of other namespaces live. */
#define SHM_OTHER_PIDS 0x80000000U
static inline uint32_t shm_locker(const struct shm_run *r)
{
	return r->shm->other_pids ? SHM_OTHER_PIDS | (uint32_t)(r->thread.values[SHM_TASK] >> 32) :
				    (uint32_t)r->thread.values[SHM_TASK];
}

/* The thread that runs programs from now on. */
static inline void shm_set_tid(struct shm_run *r, uint32_t tid)
{
	r->thread.values[SHM_TASK] = (r->thread.values[SHM_TASK] & ~(uint64_t)UINT32_MAX) | tid;
}

/* Run @p.  False: it is at work on this lane already, or it failed (which is counted). */
bool shm_run_prog(struct shm_run *r, const struct vm_prog *p, uint64_t ctx[11]);

/* Where the C library has each thread's struct rseq, from the thread pointer on, is known from now on. */
void shm_use_rseq(long off);

/* ns of CLOCK_MONOTONIC; *cpu: 1 + the processor's number if that comes with it, else 0. */
uint64_t shm_now_and_cpu(const struct shm *s, uint32_t *cpu);
uint64_t shm_now(const struct shm *s);

/* --- reading ------------------------------------------------------------------------------------------ */

/*
 * Every element of map @map in all lanes that were ever used; a key of a lane's map can come once for each lane.
 * @key and @value can change while they are read.
 */
void shm_map_each(const struct shm *s, uint32_t map, void (*each)(void *ctx, const void *key, const void *value),
		  void *ctx);

/* Set @key of a table that all share.  0, -E2BIG, or -ENOENT for another map. */
int shm_map_set(const struct shm *s, uint32_t map, const void *key, const void *value);

/* Remove @key, in all lanes.  0 or -ENOENT; an array's element becomes zero. */
int shm_map_delete(const struct shm *s, uint32_t map, const void *key);

/* Lane @n, which is below nlanes. */
uint8_t *shm_lane(const struct shm *s, uint32_t n);

/* Records of all lanes' rings, one lane after the other.  Stops when @record returns a negative errno, and returns
 * it; else how many.  A ring that makes no sense is emptied and *lost raised. */
int shm_drain(const struct shm *s, int (*record)(void *ctx, const void *rec, size_t size), void *ctx,
	      uint64_t *lost);

/* Does a living process run a program? */
bool shm_busy(const struct shm *s);

#endif
