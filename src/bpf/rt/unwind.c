/*
 * Native frames, by the tables of abi/unwind.h; without an entry there, by the frame pointer.
 */
#include "rt.h"

#include "stack.h"

static long (*const rt_read_user)(void *dst, u32 size, u64 src) = (void *)112;	/* probe_read_user */

static long (*const rt_read_kernel)(void *dst, u32 size, u64 src) = (void *)113;	/* probe_read_kernel */

#define INLINE static inline __attribute__((always_inline))

enum { FAR = 1 << 20 };		/* bytes that a frame pointer may lie above the stack pointer */

/*
 * A return probe makes its function return to a trampoline of the kernel; the return address that it has replaced is in
 * the kernel's list of such calls, the innermost first.  Calls that have ended come before the stack's first frame.  A
 * tail call uses the same stack slot as its caller: at most CHAIN entries are skipped.
 */
enum { CHAIN = 8 };

INLINE void read_slot(struct stack_work *w)
{
	u64 slot = 0;

	if (w->call && rt_read_kernel(&slot, 8, w->call + w->call_at))
		w->call = 0;
	w->call_slot = slot;
}

/* The real return address of a function, whose return address on the stack is @addr, at @slot. */
static __attribute__((noinline)) u64 returns_to(struct stack_walk *c, u64 slot, u64 addr)
{
	struct stack_work *w = c->work;
	u64 v;

#pragma unroll
	for (u32 k = 0; k < CHAIN; k++) {
		if (!w->call || w->call_slot >= slot)
			break;
		v = 0;
		if (rt_read_kernel(&v, 8, w->call + w->call_next))
			v = 0;
		w->call = v;
		read_slot(w);
	}
	v = addr;
	if (w->call && w->call_slot == slot && rt_read_kernel(&v, 8, w->call + w->call_address))
		return addr;
	return v;
}

/* Go to the caller by the frame pointer.  1: that is not valid. */
INLINE long by_pointer(struct stack_walk *c)
{
	struct stack_work *w = c->work;
	u64 bp = w->bp, pair[2] = { 0, 0 };

	if (bp < w->sp || bp - w->sp > FAR || bp & 7 || rt_read_user(pair, sizeof(pair), bp))
		return 1;
	if (w->links)
		pair[1] &= ABI_UNWIND_LINK_ADDR;
	w->loose = w->links;		/* a frame has its record anywhere */
	w->sp = bp + 16;
	w->bp = pair[0];
	w->ip = w->call ? returns_to(c, bp + 8, pair[1]) : pair[1];
	return 0;
}

/* The row for @pc: its base, and its CFA in the high half; 0 if there is none. */
static __attribute__((noinline)) u64 find_row(struct stack_walk *c, u64 pc)
{
	const struct abi_ranges *r = c->known;
	const struct abi_unwind *u = c->map;
	u64 at = 0, row, n, page;

#pragma unroll
	for (u32 step = ABI_RANGES / 2; step; step /= 2) {
		at += step & reaches(r->v[(at + step) & (ABI_RANGES - 1)].start, pc);
		rt_opaque(at);
	}
	at &= ABI_RANGES - 1;
	if (pc - r->v[at].start >= r->v[at].size) {
		c->work->missing = 1;
		return 0;
	}
	pc -= r->v[at].bias;
	page = (pc >> ABI_UNWIND_SHIFT) - r->v[at].first;
	if (page >= r->v[at].npages)
		return 0;
	page += r->v[at].index;
	row = u->index[page & (ABI_UNWIND_PAGES - 1)];
	n = u->index[(page + 1) & (ABI_UNWIND_PAGES - 1)] - row;
	if (!n)
		return 0;
	pc &= (1 << ABI_UNWIND_SHIFT) - 1;
	at = 0;
#pragma unroll
	for (u32 step = 1 << (ABI_UNWIND_SHIFT - 1); step; step /= 2) {
		at += step & reaches(u->rows[(row + at + step) & (ABI_UNWIND_ROWS - 1)].at, pc) & reaches(at + step + 1, n);
		rt_opaque(at);
	}
	row = (row + at) & (ABI_UNWIND_ROWS - 1);
	return u->rows[row].base | (u64)(u32)u->rows[row].cfa << 32;
}

/*
 * The caller by @row, where the machine has a link register.  A frame that saves the frame pointer has made a record, to
 * which the frame pointer leads, so its CFA is known without the stack pointer.
 */
static __attribute__((noinline)) long by_link(struct stack_walk *c, u64 row, u64 pos)
{
	struct stack_work *w = c->work;
	u64 at = row >> 56, rbp = (u64)(s64)ABI_UNWIND_RBP(row), cfa, v = w->link;

	if (!w->loose || ABI_UNWIND_BASE(row) == ABI_UNWIND_BP)
		cfa = (ABI_UNWIND_BASE(row) == ABI_UNWIND_SP ? w->sp : w->bp) + (u64)((s64)(row << 8) >> 40);
	else if (rbp)
		cfa = w->bp - rbp;
	else
		return by_pointer(c);
	if (cfa < w->sp || (!at && pos))
		return 1;
	if (at && rt_read_user(&v, 8, at == ABI_UNWIND_BEHIND ? cfa + rbp + 8 : cfa - 8 * at))
		return 1;
	v &= ABI_UNWIND_LINK_ADDR;
	/* The kernel notes a call's stack pointer at its start, which is the CFA. */
	w->ip = w->call ? returns_to(c, cfa, v) : v;
	if (rbp) {
		if (rt_read_user(&v, 8, cfa + rbp))
			return 1;
		w->bp = v;
	}
	w->sp = cfa;
	w->loose = 0;
	return 0;
}

static long next_caller(u32 k, struct stack_walk *c)
{
	struct stack_work *w = c->work;
	u64 pos = w->pos, row, cfa, v;

	if (!w->ip || pos >= STACK_ADDRS || pos >= w->most)
		return 1;
	w->words[pos] = w->ip;
	w->sps[pos] = w->sp;
	w->pos = pos + 1;
	row = find_row(c, w->ip - !!pos);	/* a call may be the function's last instruction */
	if (ABI_UNWIND_BASE(row) == ABI_UNWIND_END)
		return 1;
	if (ABI_UNWIND_BASE(row) == ABI_UNWIND_UNKNOWN)
		return by_pointer(c);
	if (w->links)
		return by_link(c, row, pos);
	cfa = (ABI_UNWIND_BASE(row) == ABI_UNWIND_SP ? w->sp : w->bp) + (u64)((s64)row >> 32);
	if (cfa <= w->sp)
		return 1;
	v = 0;
	if (rt_read_user(&v, 8, cfa - 8))
		return 1;
	w->ip = w->call ? returns_to(c, cfa - 8, v) : v;
	if (ABI_UNWIND_RBP(row)) {
		if (rt_read_user(&v, 8, cfa + (u64)(s64)ABI_UNWIND_RBP(row)))
			return 1;
		w->bp = v;
	}
	w->sp = cfa;
	return 0;
}

RT s64 rt_unwind(struct stack_walk *c)
{
	c->work->pos = c->work->missing = 0;
	read_slot(c->work);
	rt_loop(STACK_ADDRS, next_caller, c, 0);
	return 0;
}
