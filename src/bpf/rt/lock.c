/*
 * Taking and sharing the locks of lock.h.
 *
 * A program that shares a lock adds itself to its CPU's slot and then checks whether the lock is taken; one that takes
 * it sets LOCK_TAKEN and then checks all slots.  One of two sees the other, since each of these is an atomic operation
 * with a full barrier.  The one that shares gives way.  All waiting has a time limit.  A program that has interrupted
 * the holder on the same CPU does not wait at all: the holder continues only after it has ended.
 */
#include "rt.h"

#include "lock.h"

static u64 (*const rt_time)(void) = (void *)5;		/* ktime_get_ns */

struct wait {
	volatile u64 *taken, *mine;
	u64 until, got;
	u64 slots, how;
};

enum { TURNS = 1 << 23 };	/* the limit of bpf_loop */

/* Is the holder on this CPU, so that it makes no sense to wait? */
static inline __attribute__((always_inline)) u64 is_own(const struct wait *c, u64 cpu)
{
	return c->how & LOCK_ALONE && cpu == c->how >> LOCK_CPU_SHIFT;
}

static long try_share(u32 k, struct wait *c)
{
	u64 taken = *c->taken;

	if (taken && is_own(c, taken - 1))
		return 1;
	if (!taken) {
		__sync_fetch_and_add(c->mine, 1);
		if (!*c->taken) {
			c->got = 1;
			return 1;
		}
		__sync_fetch_and_add(c->mine, -1);
	}
	return rt_time() > c->until;
}

RT u64 rt_share(u8 *lock, u64 how, u64 slots, u64 wait_ns)
{
	struct wait c = { (volatile u64 *)lock, 0, 0, 0, slots, how };
	u64 cpu = how >> LOCK_CPU_SHIFT;

	c.mine = (volatile u64 *)(lock + LOCK_LINE + (cpu & (slots - 1)) * LOCK_LINE);
	__sync_fetch_and_add(c.mine, 1);
	if (!*c.taken)
		return 1;
	__sync_fetch_and_add(c.mine, -1);
	c.until = rt_time() + wait_ns;
	rt_loop(TURNS, try_share, &c, 0);
	return c.got;
}

static long try_take(u32 k, struct wait *c)
{
	u64 taken = *c->taken;

	if (taken && is_own(c, taken - 1))
		return 1;
	if (!taken && !__sync_val_compare_and_swap(c->taken, 0, 1 + (c->how >> LOCK_CPU_SHIFT))) {
		c->got = 1;
		return 1;
	}
	return rt_time() > c->until;
}

/* Check the current slot once.  Its number is in the lock, whose content the verifier does not track. */
static long try_slot(u32 k, struct wait *c)
{
	u64 at = c->taken[LOCK_AT];

	if (at >= c->slots) {
		c->got = 1;
		return 1;
	}
	if (!*(volatile u64 *)((u8 *)c->taken + LOCK_LINE + at * LOCK_LINE)) {
		c->taken[LOCK_AT] = at + 1;
		return 0;
	}
	if (is_own(c, at))
		return 1;
	return rt_time() > c->until;
}

RT u64 rt_take(u8 *lock, u64 how, u64 slots, u64 wait_ns)
{
	struct wait c = { (volatile u64 *)lock, 0, 0, 0, slots, how };

	if (__sync_val_compare_and_swap(c.taken, 0, 1 + (how >> LOCK_CPU_SHIFT))) {
		c.until = rt_time() + wait_ns;
		rt_loop(TURNS, try_take, &c, 0);
		if (!c.got)
			return 0;
	}
	if (!(how & LOCK_SHARED))
		return 1;
	c.taken[LOCK_AT] = 0;
	c.got = 0;
	c.until = rt_time() + wait_ns;
	rt_loop(TURNS, try_slot, &c, 0);
	if (!c.got)
		__sync_lock_test_and_set(c.taken, 0);
	return c.got;
}
