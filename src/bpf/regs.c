/*
 * Register allocation by linear scan: lives are taken in the order in which they begin; when no register is free, the
 * value whose life ends last is spilled.
 */
#include "bpf/plan.h"

#include <stdlib.h>

#include "base/arena.h"
#include "bpf/asm.h"

enum { FIRST_REG = R6, NREGS = 3 };

static int by_start(const void *x, const void *y)
{
	const struct interval *a = x, *b = y;

	if (a->start != b->start)
		return a->start < b->start ? -1 : 1;
	return a->reg < b->reg ? -1 : a->reg > b->reg;
}

/* Number the @n lives so that those with the same number do not overlap: a life may begin where another ends only
 * when @touch.  Returns how many numbers are used. */
static uint32_t colour(struct arena *a, const struct interval *lives, uint32_t n, bool touch, uint32_t *out)
{
	uint32_t *ends = arena_alloc(a, n * sizeof(*ends) + 1);
	uint32_t used = 0;

	for (uint32_t k = 0; k < n; k++) {
		uint32_t s;

		for (s = 0; s < used; s++) {
			if (ends[s] < lives[k].start || (touch && ends[s] == lives[k].start))
				break;
		}
		if (s == used)
			used++;
		ends[s] = lives[k].end;
		out[k] = s;
	}
	return used;
}

/* Registers that all lie in scratch memory; @touch as above. */
static uint32_t all_in_scratch(struct arena *a, struct interval *lives, uint32_t n, bool touch, struct loc *locs)
{
	uint32_t *places = arena_alloc(a, n * sizeof(*places) + 1);
	uint32_t used;

	qsort(lives, n, sizeof(*lives), by_start);
	used = colour(a, lives, n, touch, places);
	for (uint32_t k = 0; k < n; k++)
		locs[lives[k].reg] = (struct loc){ LOC_SCRATCH, places[k] };
	return used;
}

uint32_t regs_scratch(struct arena *a, struct interval *lives, uint32_t n, struct loc *locs)
{
	return all_in_scratch(a, lives, n, true, locs);
}

uint32_t regs_integers(struct arena *a, struct interval *lives, uint32_t n, struct loc *locs)
{
	struct interval *spilled = arena_alloc(a, n * sizeof(*spilled) + 1);
	uint32_t *slots = arena_alloc(a, n * sizeof(*slots) + 1);
	const struct interval *active[NREGS] = { NULL };
	uint32_t nspilled = 0, used;

	qsort(lives, n, sizeof(*lives), by_start);
	for (uint32_t k = 0; k < n; k++) {
		const struct interval *loser = &lives[k];
		int at = -1;

		for (int r = 0; r < NREGS && at < 0; r++) {
			if (!active[r] || active[r]->end <= lives[k].start)
				at = r;
		}
		for (int r = 0; r < NREGS && at < 0; r++) {
			if (active[r]->end > loser->end)
				loser = active[r];
		}
		if (at < 0 && loser != &lives[k]) {
			at = (int)locs[loser->reg].v - FIRST_REG;
			spilled[nspilled++] = *loser;
		}
		if (at < 0) {
			spilled[nspilled++] = lives[k];
		} else {
			active[at] = &lives[k];
			locs[lives[k].reg] = (struct loc){ LOC_REG, FIRST_REG + at };
		}
	}
	qsort(spilled, nspilled, sizeof(*spilled), by_start);
	used = colour(a, spilled, nspilled, true, slots);
	for (uint32_t k = 0; k < nspilled; k++) {
		struct loc *l = &locs[spilled[k].reg];

		if (slots[k] < PLAN_STACK_SLOTS)
			*l = (struct loc){ LOC_STACK, slots[k] };
		else
			*l = (struct loc){ LOC_SCRATCH, slots[k] - PLAN_STACK_SLOTS };
	}
	return used > PLAN_STACK_SLOTS ? used - PLAN_STACK_SLOTS : 0;
}

uint32_t regs_strings(struct arena *a, struct interval *lives, uint32_t n, struct loc *locs)
{
	return all_in_scratch(a, lives, n, false, locs);
}
