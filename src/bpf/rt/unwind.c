/*
 * Native frames, by the tables of abi/unwind.h; where these have nothing, by the frame pointer.
 */
#include "rt.h"

#include "stack.h"

static long (*const rt_read_user)(void *dst, u32 size, u64 src) = (void *)112;	/* probe_read_user */

#define INLINE static inline __attribute__((always_inline))

enum { FAR = 1 << 20 };		/* bytes that a frame pointer may lie above the stack pointer */

/* By the frame pointer: is that one? */
INLINE long by_pointer(struct stack_work *w)
{
	u64 bp = w->bp, pair[2] = { 0, 0 };

	if (bp < w->sp || bp - w->sp > FAR || bp & 7 || rt_read_user(pair, sizeof(pair), bp))
		return 1;
	w->sp = bp + 16;
	w->bp = pair[0];
	w->ip = pair[1];
	return 0;
}

static long next_caller(u32 k, struct stack_walk *c)
{
	const struct abi_ranges *r = c->known;
	const struct abi_unwind *u = c->map;
	struct stack_work *w = c->work;
	u64 pos = w->pos, pc, at = 0, row, n, page, cfa, v;
	u32 base;

	if (!w->ip || pos >= STACK_ADDRS || pos >= w->most)
		return 1;
	w->words[pos] = w->ip;
	w->sps[pos] = w->sp;
	w->pos = pos + 1;
	pc = w->ip - !!pos;		/* a call may be the last thing that a function does */
#pragma unroll
	for (u32 step = ABI_RANGES / 2; step; step /= 2)
		at += step & reaches(r->v[(at + step) & (ABI_RANGES - 1)].start, pc);
	at &= ABI_RANGES - 1;
	if (pc - r->v[at].start >= r->v[at].size) {
		w->missing = 1;
		return by_pointer(w);
	}
	pc -= r->v[at].bias;
	page = (pc >> ABI_UNWIND_SHIFT) - r->v[at].first;
	if (page >= r->v[at].npages)
		return by_pointer(w);
	page += r->v[at].index;
	row = u->index[page & (ABI_UNWIND_PAGES - 1)];
	n = u->index[(page + 1) & (ABI_UNWIND_PAGES - 1)] - row;
	if (!n)
		return by_pointer(w);
	pc &= (1 << ABI_UNWIND_SHIFT) - 1;
	at = 0;
#pragma unroll
	for (u32 step = 1 << (ABI_UNWIND_SHIFT - 1); step; step /= 2)
		at += step & reaches(u->rows[(row + at + step) & (ABI_UNWIND_ROWS - 1)].at, pc) & reaches(at + step + 1, n);
	row = (row + at) & (ABI_UNWIND_ROWS - 1);
	base = u->rows[row].base;
	if (ABI_UNWIND_BASE(base) == ABI_UNWIND_END)
		return 1;
	if (ABI_UNWIND_BASE(base) == ABI_UNWIND_UNKNOWN)
		return by_pointer(w);
	cfa = (ABI_UNWIND_BASE(base) == ABI_UNWIND_SP ? w->sp : w->bp) + (u64)(s64)u->rows[row].cfa;
	if (cfa <= w->sp)
		return 1;
	v = 0;
	if (rt_read_user(&v, 8, cfa - 8))
		return 1;
	w->ip = v;
	if (ABI_UNWIND_RBP(base)) {
		if (rt_read_user(&v, 8, cfa + (u64)(s64)ABI_UNWIND_RBP(base)))
			return 1;
		w->bp = v;
	}
	w->sp = cfa;
	return 0;
}

RT s64 rt_unwind(struct stack_walk *c)
{
	c->work->pos = c->work->missing = 0;
	rt_loop(STACK_ADDRS, next_caller, c, 0);
	return 0;
}
