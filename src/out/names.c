#include "out/names.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "abi/python.h"
#include "base/arena.h"
#include "out/names_priv.h"
#include "probe/pycode.h"
#include "probe/symbols.h"
#include "vm/record.h"

struct names *names_new(struct symbols *symbols, size_t max)
{
	struct names *n = calloc(1, sizeof(*n));

	if (!n)
		return NULL;
	n->symbols = symbols;
	n->max = max;
	n->arena = arena_new();
	return n;
}

void names_free(struct names *n)
{
	if (!n)
		return;
	bytemap_fini(&n->stacks);
	bytemap_fini(&n->codes);
	bytemap_fini(&n->texts);
	arena_free(n->arena);
	free(n);
}

bool names_full(const struct names *n)
{
	enum { ENTRY = 2 * sizeof(struct bytemap_slot) + 32 };	/* in a half full table, with the key */

	return arena_used(n->arena) + (n->stacks.n + n->codes.n + n->texts.n) * ENTRY >= n->max;
}

/* --- Python ------------------------------------------------------------------------------------------- */

int names_add_code(struct names *n, const struct record *rec, bool look)
{
	const struct abi_code *r = (const struct abi_code *)(const void *)rec->hdr;
	struct pycode *c;

	if (names_full(n))
		return -ENOSPC;
	c = pycode_read(n->arena, rec, look);
	return c ? bytemap_set(&n->codes, &r->number, sizeof(r->number), c) : -EINVAL;
}

/* Is it a call of Python's evaluator? */
static bool is_evaluator(const struct frame *f)
{
	return f->sym.func && !strncmp(f->sym.func, "_PyEval_EvalFrameDefault", 24);
}

/* The Python frames in a record that one native call runs. */
struct pyrun {
	const struct abi_pyframe *v, *end, *next;
	uint32_t call;			/* the number of that native frame; NO_CALL: the next evaluator call */
};

enum { NO_CALL = UINT32_MAX };

/* The run that begins at @v; the record's frames end at @end. */
static struct pyrun run_at(const struct abi_pyframe *v, const struct abi_pyframe *end)
{
	struct pyrun run = { .v = v, .next = v, .call = NO_CALL };

	while (run.next < end && !(run.next->flags & ABI_PYFRAME_CALL) && (run.next == v || !(run.next->flags & ABI_PYFRAME_FIRST)))
		run.next++;
	run.end = run.next;
	if (run.next < end && run.next->flags & ABI_PYFRAME_CALL)
		run.call = run.next++->instr;
	return run;
}

/* Is it a frame of dtap's agent? */
static bool is_agents(const struct frame *f)
{
	return f->sym.mod && !strncmp(f->sym.mod, "dtap-agent", sizeof("dtap-agent") - 1);
}

static void add_run(struct names *n, struct stack *st, const struct pyrun *run)
{
	static const struct pycode unknown = { .file = "?", .name = "?" };

	for (const struct abi_pyframe *p = run->v; p < run->end; p++) {
		const struct pycode *c = bytemap_get(&n->codes, &p->code, sizeof(p->code));
		struct frame *f = &st->frames[st->nframes++];

		*f = (struct frame){ .code = c ? c : &unknown, .line = c ? pycode_line(c, (int32_t)p->instr) : 0,
				     .instr = st->by_instr ? (int32_t)p->instr : -1 };
	}
}

/* Does native frame @f with number @number run @run? */
static bool runs(const struct frame *f, uint32_t number, const struct pyrun *run)
{
	return run->call == NO_CALL ? is_evaluator(f) : run->call <= number;
}

/* --- stacks ------------------------------------------------------------------------------------------- */

/* Is it a kernel frame that belongs to tracing at a tracepoint? */
static bool is_own(const struct frame *f)
{
	return f->sym.mod && f->sym.func && (!strcmp(f->sym.mod, "bpf") || !strncmp(f->sym.func, "bpf_trace_run", 13) ||
				     !strncmp(f->sym.func, "__bpf_trace_", 12) || !strncmp(f->sym.func, "__traceiter_", 12));
}

/* Remove frames of tracing itself, and those after the first that are wanted. */
static void trim(struct stack *st)
{
	while (!st->user && st->nframes && is_own(st->frames)) {
		st->frames++;
		st->nframes--;
	}
	if (st->most && st->nframes > st->most)
		st->nframes = st->most;
}

/*
 * The names of the kernel's functions do not change, and reading them takes long: it is done when a stack is printed, so
 * that requests of programs do not wait for it.
 */
const struct stack *names_stack(const struct names *n, uint64_t number)
{
	struct stack *st = bytemap_get(&n->stacks, &number, sizeof(number));

	if (!st || !st->unnamed)
		return st;
	for (uint32_t i = 0; i < st->nframes; i++)
		symbols_kernel(n->symbols, &st->frames[i].sym);
	trim(st);
	st->unnamed = false;
	return st;
}

int names_add(struct names *n, const struct record *rec)
{
	const struct abi_record *hdr = rec->hdr;
	const uint64_t *slots = record_slots(rec);
	const struct abi_pyframe *py, *end;
	uint32_t nslots, naddrs;
	struct pyrun run;
	struct stack *st;

	if (rec->size < sizeof(*hdr) + 16 || hdr->size > rec->size || hdr->size < sizeof(*hdr) + 16)
		return -EINVAL;
	if (bytemap_get(&n->stacks, &slots[0], sizeof(slots[0])))
		return 0;
	if (names_full(n))
		return -ENOSPC;
	n->nstacks++;
	st = arena_new_of(n->arena, struct stack);
	st->pid = hdr->pid;
	st->user = slots[1] & ABI_STACK_USER;
	st->by_instr = slots[1] & ABI_STACK_INSTRUCTIONS;
	st->unnamed = !st->user;
	st->most = (uint32_t)(slots[1] >> 32);
	naddrs = nslots = (uint32_t)((hdr->size - sizeof(*hdr) - 16) / 8);
	if (slots[1] & ABI_STACK_PYTHON)
		naddrs = ABI_STACK_ADDRS(slots[1]);
	if (naddrs > nslots)
		return -EINVAL;
	py = (const struct abi_pyframe *)&slots[2 + naddrs];
	end = py + (nslots - naddrs) / 2;
	st->frames = arena_alloc(n->arena, (naddrs + (size_t)(end - py)) * sizeof(*st->frames) + 1);
	run = run_at(py, end);
	for (uint32_t i = 0; i < naddrs; i++) {
		struct frame *f = &st->frames[st->nframes++];
		bool one = false;

		*f = (struct frame){ .sym.addr = slots[2 + i] };
		if (!st->user)
			continue;
		symbols_user(n->symbols, st->pid, n->nstacks, &f->sym);
		st->nframes -= is_agents(f);
		while (run.v < end && runs(f, i, &run) && !(one && run.call == NO_CALL)) {
			add_run(n, st, &run);
			one = true;
			run = run_at(run.next, end);
		}
	}
	for (; run.v < end; run = run_at(run.next, end))
		add_run(n, st, &run);
	if (st->user)
		trim(st);
	return bytemap_set(&n->stacks, &slots[0], sizeof(slots[0]), st);
}
