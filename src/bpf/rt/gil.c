/*
 * CPython's lock, the GIL: a call of pthread_cond_signal() or pthread_cond_timedwait() is an event of the lock if its
 * condition variable is one of the two inside of a lock.
 *
 *	struct _gil_runtime_state (pycore_gil.h), the same in 3.9 to 3.15, with glibc's types
 *	  0 interval	  8 last_holder	 16 locked, an int	 24 switch_number
 *	 32 cond	 80 mutex	120 switch_cond		168 switch_mutex	128 and 176 on aarch64
 *
 *	take_gil()	locks mutex; waits for cond while locked; sets locked, last_holder and switch_number; locks
 *			switch_mutex; signals switch_cond
 *	drop_gil()	locks mutex; clears locked; signals cond
 *
 * So what happens is read from the lock itself, whose mutexes must be held by one thread (__owner, which glibc sets at
 * once) and whose other fields must be plausible.  No other condition variable has this around it, so no address is
 * needed, the first event counts, and each interpreter's own lock (3.12) is recognised.
 */
#include "rt.h"

#include "gil.h"

static void *(*const rt_lookup)(void *map, const void *key) = (void *)1;	/* map_lookup_elem */
static long (*const rt_update)(void *map, const void *key, const void *value, u64 flags) = (void *)2;
static long (*const rt_delete)(void *map, const void *key) = (void *)3;
static long (*const rt_read_user)(void *dst, u32 size, u64 src) = (void *)112;	/* probe_read_user */

#define INLINE static inline __attribute__((always_inline))

enum { COND = 32, MUTEX = 80, COND_SIZE = 48 };
enum { INTERVAL, HOLDER, LOCKED, SWITCHES, WORDS };
#define INTERVAL_MAX 0xffffffffull	/* in a mutex, the number of its users is in the upper half of this word */

/* The thread that holds the pthread_mutex_t at @addr; 0: none. */
INLINE u32 owner(u64 addr)
{
	u32 m[3];	/* __lock, __count, __owner */

	if (rt_read_user(m, sizeof(m), addr) || (m[0] != 1 && m[0] != 2) || m[1])
		return 0;
	return m[2];
}

/* The thread that changes the lock at @addr, if there is one; @locked: the word. */
INLINE u32 changer(u64 addr, u32 *locked)
{
	u64 w[WORDS];

	if (rt_read_user(w, sizeof(w), addr) || !w[INTERVAL] || w[INTERVAL] > INTERVAL_MAX || !w[HOLDER] || w[HOLDER] & 7 ||
	    !w[SWITCHES])
		return 0;
	*locked = (u32)w[LOCKED];
	return *locked > 1 ? 0 : owner(addr + MUTEX);
}

INLINE u64 find(u64 cond, u64 mutex_size, u64 *lock)
{
	u64 switch_cond = MUTEX + mutex_size;
	u32 locked = 0, thread;

	*lock = cond - COND;
	if (changer(*lock, &locked))
		return locked ? GIL_WAIT : GIL_DROP;
	*lock = cond - switch_cond;
	thread = changer(*lock, &locked);
	return thread && locked && owner(*lock + switch_cond + COND_SIZE) == thread ? GIL_TAKE : GIL_NOTHING;
}

/*
 * A thread calls with the address @cond.  1 if that is what @e->what is about, with its outputs; else 0.  @map remembers
 * when the thread began to wait (for GIL_WAIT and GIL_TAKE), or took the lock (for GIL_DROP).
 */
RT s64 rt_gil(void *map, struct gil_event *e, u64 cond, u64 now)
{
	u64 lock, what = find(cond, e->mutex_size, &lock), wanted = e->what;
	u64 begins = wanted == GIL_DROP ? GIL_TAKE : GIL_WAIT, ends = wanted == GIL_DROP ? GIL_DROP : GIL_TAKE;
	u64 *since;

	e->lock = lock;
	e->ns = 0;
	if (what != begins && what != ends)
		return 0;
	since = rt_lookup(map, &e->thread);
	if (what == begins) {
		/* A thread that waits wakes up now and then, and waits again. */
		if (!since || wanted == GIL_DROP)
			rt_update(map, &e->thread, &now, 0);
		return wanted == GIL_WAIT && !since;
	}
	if (since)
		e->ns = now - *since;
	rt_delete(map, &e->thread);
	return wanted != GIL_WAIT;
}
