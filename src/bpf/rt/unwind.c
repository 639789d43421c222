/*
 * Native frames, by the tables of abi/unwind.h; where these have nothing, by the frame pointer.
 */
#include "rt.h"

#include "stack.h"

static void *(*const rt_lookup)(void *map, const void *key) = (void *)1;	/* map_lookup_elem */
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
	struct stack_work *w = c->work;
	const struct abi_unwind_page *page;
	struct abi_unwind_key key;
	u64 pos = w->pos, pc, at = 0, row, cfa, v;
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
	key.file = r->v[at].file;
	key.page = (u32)(pc >> ABI_UNWIND_SHIFT);
	page = rt_lookup(c->map, &key);
	if (!page)
		return by_pointer(w);
	pc &= (1 << ABI_UNWIND_SHIFT) - 1;
	row = 0;
#pragma unroll
	for (u32 step = ABI_UNWIND_ROWS / 2; step; step /= 2)
		row += step & reaches(page->v[(row + step) & (ABI_UNWIND_ROWS - 1)].at, pc);
	row &= ABI_UNWIND_ROWS - 1;
	base = page->v[row].base;
	if (ABI_UNWIND_BASE(base) == ABI_UNWIND_END)
		return 1;
	if (ABI_UNWIND_BASE(base) == ABI_UNWIND_UNKNOWN)
		return by_pointer(w);
	cfa = (ABI_UNWIND_BASE(base) == ABI_UNWIND_SP ? w->sp : w->bp) + (u64)(s64)page->v[row].cfa;
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
