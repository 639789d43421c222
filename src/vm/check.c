/*
 * The check at load time, for vm.h's guarantees about running programs.
 *
 * Four passes over the whole program, the first three in files of their own:
 *
 *	shape	each instruction by itself: opcode, registers, unused fields; functions, and that jumps do not leave
 *		them
 *	graph	the order of functions, callees before callers; no recursion, no loops but through may_goto; costs
 *	flow	what registers hold, function by function, callers first.  A function's instructions are visited in
 *		topological order, ignoring the fall-through of may_gotos: without these one pass is enough, else it
 *		is repeated until nothing changes
 *	frames	the stack that chains of calls need
 *
 * A register is unset, or holds a number, a pointer to the stack, the context or a map's value plus a constant, a
 * map, or a function.  Where two paths meet with different contents it becomes a number.  Numbers may be used as
 * addresses, because such accesses are checked at run time; they are refused only where the value must be known when
 * loading (maps for helpers, callbacks).  A called function sees pointers to the stack and functions as numbers: an
 * offset in the caller's frame is another address in the callee's, and a function that calls its argument could
 * recurse.
 */
#include "vm/check.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int vm_refuse(struct check *c, uint32_t insn, const char *fmt, ...)
{
	va_list ap;

	c->err->insn = insn;
	va_start(ap, fmt);
	vsnprintf(c->err->text, sizeof(c->err->text), fmt, ap);
	va_end(ap);
	return -EINVAL;
}

/* --- frames ------------------------------------------------------------------------------------------ */

/* Callees come first, so a callee's total stack is known when its caller is visited. */
static int frames(struct check *c)
{
	for (uint32_t o = 0; o < c->norder; o++) {
		uint32_t k = c->order[o], below = 0;
		const struct vm_func *f = &c->p->funcs[k];

		for (uint32_t at = f->start; at < f->end; at++) {
			uint32_t to;

			if (c->second[at] || (!is_func_call(&c->p->insns[at]) && !is_func_ref(&c->p->insns[at])))
				continue;
			to = vm_callee(c, at);
			below = c->depth[to] > below ? c->depth[to] : below;
		}
		c->depth[k] = f->frame + below;	/* from here on bytes instead of frames */
		if (c->depth[k] > VM_STACK)
			return vm_refuse(c, f->start, "%u bytes of stack, of which there are %d", c->depth[k], VM_STACK);
	}
	return 0;
}

/* --- loading ----------------------------------------------------------------------------------------- */

static int check_all(struct check *c)
{
	struct vm_prog *p = c->p;
	int err = -ENOMEM;

	c->second = calloc(c->n + 1, sizeof(*c->second));
	c->func_at = calloc(c->n, sizeof(*c->func_at));
	c->ways = calloc(c->n, sizeof(*c->ways));
	c->seq = calloc(c->n, sizeof(*c->seq));
	c->seen = calloc(c->n, sizeof(*c->seen));
	c->states = calloc(c->n, sizeof(*c->states));
	if (!c->second || !c->func_at || !c->ways || !c->seq || !c->seen || !c->states)
		goto out;
	err = vm_check_shape(c);
	if (err)
		goto out;
	c->marks = calloc(p->nfuncs, sizeof(*c->marks));
	c->depth = calloc(p->nfuncs, sizeof(*c->depth));
	c->order = calloc(p->nfuncs, sizeof(*c->order));
	if (!c->marks || !c->depth || !c->order) {
		err = -ENOMEM;
		goto out;
	}
	err = vm_check_graph(c);
	if (!err)
		err = vm_check_flow(c);
	if (!err)
		err = frames(c);
out:
	free(c->second);
	free(c->func_at);
	free(c->ways);
	free(c->seq);
	free(c->seen);
	free(c->states);
	free(c->marks);
	free(c->depth);
	free(c->order);
	return err;
}

int vm_load(const struct vm_spec *spec, struct vm_prog **ret, struct vm_error *err)
{
	struct check c = { .err = err, .n = spec->ninsns };
	int res = -ENOMEM;

	if (!spec->ninsns || spec->ninsns > VM_MAX_INSNS)
		return vm_refuse(&c, 0, "%u instructions, of at most %u", spec->ninsns, (unsigned int)VM_MAX_INSNS);
	c.p = calloc(1, sizeof(*c.p));
	if (!c.p)
		return -ENOMEM;
	c.p->spec = *spec;
	if (!c.p->spec.budget)
		c.p->spec.budget = VM_DEFAULT_BUDGET;
	c.p->insns = calloc(spec->ninsns, sizeof(*c.p->insns));
	c.p->notes = calloc(spec->ninsns, sizeof(*c.p->notes));
	if (c.p->insns && c.p->notes) {
		memcpy(c.p->insns, spec->insns, spec->ninsns * sizeof(*c.p->insns));
		c.p->spec.insns = c.p->insns;
		res = check_all(&c);
	}
	if (res) {
		vm_free(c.p);
		return res;
	}
	*ret = c.p;
	return 0;
}

void vm_free(struct vm_prog *p)
{
	if (!p)
		return;
	vm_code_free(p->code);
	free(p->insns);
	free(p->notes);
	free(p->funcs);
	free(p);
}
