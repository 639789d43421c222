/*
 * The check of a program, second pass: the order of functions and of instructions, and costs (check.c).
 */
#include "vm/check.h"

#include <string.h>

uint32_t vm_callee(const struct check *c, uint32_t at)
{
	return c->func_at[at + 1 + (uint32_t)c->p->insns[at].imm] - 1;
}

uint32_t vm_follower(const struct check *c, uint32_t at, int k)
{
	const struct bpf_insn *i = &c->p->insns[at];

	if (is_exit(i) || (k == 1 && !is_branch(i)) || k > 1)
		return 0;
	if (k == 1 || is_goto(i))
		return (uint32_t)jump_to(i, at);
	return at + (is_imm64(i) ? 2 : 1);
}

/* The same without the fall-through of a may_goto: the rest has no loops. */
static uint32_t forward(const struct check *c, uint32_t at, int k)
{
	return k == 0 && is_may_goto(&c->p->insns[at]) ? 0 : vm_follower(c, at, k);
}

/* Put the instructions that are reachable from @root and not yet seen in front of seq[*done]; depth first. */
static int sort_from(struct check *c, const struct vm_func *f, uint32_t root, uint32_t *first)
{
	uint32_t *stack = &c->seq[f->start], open = 0, done = *first;

	stack[open++] = root;
	c->seen[root] = OPEN;
	while (open) {
		uint32_t at = stack[open - 1], to = 0;

		for (int k = 0; k < 2; k++) {
			uint32_t next = forward(c, at, k);

			if (next && c->seen[next] == OPEN)
				return vm_refuse(c, at, "a loop without may_goto");
			if (next && c->seen[next] == NEW)
				to = next;
		}
		if (to) {
			c->seen[to] = OPEN;
			stack[open++] = to;
		} else {
			c->seen[at] = DONE;
			open--;
			c->seq[--done] = at;
		}
	}
	*first = done;
	return 0;
}

/*
 * Sort the instructions of @f topologically.  Their order in the program is not enough: compilers jump back to shared
 * ends of functions, which is not a loop.  The array is filled from its end; the part not yet filled is the stack of
 * the search.
 */
static int sort(struct check *c, const struct vm_func *f)
{
	uint32_t *stack = &c->seq[f->start], done = f->end;
	int err = sort_from(c, f, f->start, &done);
	bool more = true;

	while (!err && more) {
		more = false;
		for (uint32_t at = f->start; !err && at < f->end; at++) {
			if (c->second[at] || c->seen[at] != DONE || !is_may_goto(&c->p->insns[at]) ||
			    c->seen[at + 1] != NEW)
				continue;
			err = sort_from(c, f, at + 1, &done);
			more = true;
		}
	}
	if (err)
		return err;
	for (uint32_t at = f->start; at < f->end; at++) {
		if (c->seen[at] == NEW && !c->second[at])
			return vm_refuse(c, at, "unreachable");
	}
	/* The array lacks the second halves of ld_imm64: move it to the function's start. */
	memmove(stack, &c->seq[done], (f->end - done) * sizeof(*stack));
	for (uint32_t k = f->start + f->end - done; k < f->end; k++)
		c->seq[k] = UINT32_MAX;
	return 0;
}

/* Compute the longest path through @f; its callees' are known.  A callback is charged by its loop. */
static int cost_of(struct check *c, struct vm_func *f)
{
	for (uint32_t n = f->start; n < f->end && c->seq[n] != UINT32_MAX; n++) {
		uint32_t at = c->seq[n], ways = c->ways[at] + 1;

		if (is_func_call(&c->p->insns[at]))
			ways += c->p->funcs[vm_callee(c, at)].cost;
		if (ways > VM_MAX_COST)
			return vm_refuse(c, at, "more than %d instructions in a run", VM_MAX_COST);
		for (int k = 0; k < 2; k++) {
			uint32_t to = forward(c, at, k);

			if (to && ways > c->ways[to])
				c->ways[to] = ways;
		}
		f->cost = ways > f->cost ? ways : f->cost;
	}
	return 0;
}

/* @nest: the depth of frames, including that of @k. */
static int visit(struct check *c, uint32_t k, unsigned int nest)
{
	struct vm_func *f = &c->p->funcs[k];
	int err;

	c->marks[k] = OPEN;
	c->depth[k] = 1;
	for (uint32_t at = f->start; at < f->end; at++) {
		uint32_t to;

		if (c->second[at] || (!is_func_call(&c->p->insns[at]) && !is_func_ref(&c->p->insns[at])))
			continue;
		to = vm_callee(c, at);
		if (c->marks[to] == OPEN)
			return vm_refuse(c, at, "recursion");
		if (nest == VM_MAX_FRAMES)
			return vm_refuse(c, at, "calls nest deeper than %d", VM_MAX_FRAMES);
		if (c->marks[to] == NEW) {
			err = visit(c, to, nest + 1);
			if (err)
				return err;
		}
		if (c->depth[to] + 1 > c->depth[k])
			c->depth[k] = c->depth[to] + 1;
		if (c->depth[k] > VM_MAX_FRAMES)
			return vm_refuse(c, at, "calls nest deeper than %d", VM_MAX_FRAMES);
	}
	c->marks[k] = DONE;
	c->order[c->norder++] = k;
	err = sort(c, f);
	return err ? err : cost_of(c, f);
}

int vm_check_graph(struct check *c)
{
	int err = visit(c, 0, 1);

	if (err)
		return err;
	for (uint32_t k = 0; k < c->p->nfuncs; k++) {
		if (c->marks[k] == NEW)
			return vm_refuse(c, c->p->funcs[k].start, "unreachable");
	}
	return 0;
}
