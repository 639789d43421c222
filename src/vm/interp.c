/*
 * The interpreter: the reference for the compiler, and for machines without one.  One case for each kind of
 * instruction, without optimisations.
 */
#include "vm/prog.h"

#include <errno.h>
#include <string.h>

/* A call in progress, or a bpf_loop or bpf_for_each_map_elem whose callback runs. */
struct frame {
	uint32_t back;		/* the instruction to return to */
	const struct vm_func *func;
	uint64_t saved[4];	/* r6 to r9 of the caller */
	enum vm_call kind;
	uint64_t turn, turns, arg;	/* LOOP */
	struct vm_walk walk;		/* EACH */
};

struct machine {
	const struct vm_prog *p;
	struct vm_thread *t;
	uint64_t r[11];
	uint32_t pc;
	struct frame frames[VM_MAX_FRAMES];
	unsigned int nframes;
};

static uint64_t width(uint64_t v, unsigned int bits)
{
	return bits == 32 ? (uint32_t)v : v;
}

static int64_t extend(uint64_t v, unsigned int bits)
{
	switch (bits) {
	case 8:
		return (int8_t)v;
	case 16:
		return (int16_t)v;
	case 32:
		return (int32_t)v;
	default:
		return (int64_t)v;
	}
}

/* --- arithmetic -------------------------------------------------------------------------------------- */

static uint64_t divide(uint64_t a, uint64_t b, unsigned int bits, bool is_signed)
{
	if (!b)
		return 0;
	if (!is_signed)
		return a / b;
	if (extend(b, bits) == -1)
		return 0 - a;	/* unsigned: the lowest number stays as it is */
	return (uint64_t)(extend(a, bits) / extend(b, bits));
}

static uint64_t modulo(uint64_t a, uint64_t b, unsigned int bits, bool is_signed)
{
	if (!b)
		return a;
	if (!is_signed)
		return a % b;
	if (extend(b, bits) == -1)
		return 0;
	return (uint64_t)(extend(a, bits) % extend(b, bits));
}

/* Both kinds of byte swap instructions; conversion to little endian only truncates. */
static uint64_t swap(const struct bpf_insn *i, uint64_t v)
{
	bool reverse = BPF_CLASS(i->code) == BPF_ALU64 || BPF_SRC(i->code) == BPF_TO_BE;

	switch (i->imm) {
	case 16:
		return reverse ? __builtin_bswap16((uint16_t)v) : (uint16_t)v;
	case 32:
		return reverse ? __builtin_bswap32((uint32_t)v) : (uint32_t)v;
	default:
		return reverse ? __builtin_bswap64(v) : v;
	}
}

static void alu(struct machine *m, const struct bpf_insn *i)
{
	unsigned int bits = BPF_CLASS(i->code) == BPF_ALU ? 32 : 64;
	uint64_t a = width(m->r[i->dst_reg], bits);
	uint64_t b = width(BPF_SRC(i->code) == BPF_X ? m->r[i->src_reg] : (uint64_t)(int64_t)i->imm, bits);
	unsigned int count = b & (bits - 1);
	uint64_t v;

	switch (BPF_OP(i->code)) {
	case BPF_ADD:	v = a + b; break;
	case BPF_SUB:	v = a - b; break;
	case BPF_MUL:	v = a * b; break;
	case BPF_DIV:	v = divide(a, b, bits, i->off); break;
	case BPF_MOD:	v = modulo(a, b, bits, i->off); break;
	case BPF_OR:	v = a | b; break;
	case BPF_AND:	v = a & b; break;
	case BPF_XOR:	v = a ^ b; break;
	case BPF_LSH:	v = a << count; break;
	case BPF_RSH:	v = a >> count; break;
	case BPF_ARSH:	v = (uint64_t)(extend(a, bits) >> count); break;
	case BPF_NEG:	v = 0 - a; break;
	case BPF_END:	m->r[i->dst_reg] = swap(i, m->r[i->dst_reg]); return;
	default:	v = i->off ? (uint64_t)extend(b, (unsigned int)i->off) : b; break;	/* BPF_MOV */
	}
	m->r[i->dst_reg] = width(v, bits);
}

static bool holds(const struct machine *m, const struct bpf_insn *i)
{
	unsigned int bits = BPF_CLASS(i->code) == BPF_JMP32 ? 32 : 64;
	uint64_t a = width(m->r[i->dst_reg], bits);
	uint64_t b = width(BPF_SRC(i->code) == BPF_X ? m->r[i->src_reg] : (uint64_t)(int64_t)i->imm, bits);
	int64_t sa = extend(a, bits), sb = extend(b, bits);

	switch (BPF_OP(i->code)) {
	case BPF_JEQ:	return a == b;
	case BPF_JNE:	return a != b;
	case BPF_JSET:	return a & b;
	case BPF_JGT:	return a > b;
	case BPF_JGE:	return a >= b;
	case BPF_JLT:	return a < b;
	case BPF_JLE:	return a <= b;
	case BPF_JSGT:	return sa > sb;
	case BPF_JSGE:	return sa >= sb;
	case BPF_JSLT:	return sa < sb;
	default:	return sa <= sb;	/* BPF_JSLE */
	}
}

/* --- memory ------------------------------------------------------------------------------------------ */

static uint64_t load(uint64_t addr, unsigned int size)
{
	uint64_t v = 0;

	memcpy(&v, (const void *)(uintptr_t)addr, size);
	return v;
}

static void store(uint64_t addr, unsigned int size, uint64_t v)
{
	memcpy((void *)(uintptr_t)addr, &v, size);
}

#define ATOMIC(NAME, TYPE)										\
static uint64_t NAME(uint64_t addr, int op, uint64_t v, uint64_t expected)				\
{													\
	TYPE *at = (TYPE *)(uintptr_t)addr, old = (TYPE)expected, by = (TYPE)v;				\
													\
	switch (op & ~BPF_FETCH) {									\
	case BPF_ADD:	return __atomic_fetch_add(at, by, __ATOMIC_SEQ_CST);				\
	case BPF_OR:	return __atomic_fetch_or(at, by, __ATOMIC_SEQ_CST);				\
	case BPF_AND:	return __atomic_fetch_and(at, by, __ATOMIC_SEQ_CST);				\
	case BPF_XOR:	return __atomic_fetch_xor(at, by, __ATOMIC_SEQ_CST);				\
	case BPF_XCHG & ~BPF_FETCH:									\
		return __atomic_exchange_n(at, by, __ATOMIC_SEQ_CST);					\
	default:	/* BPF_CMPXCHG */								\
		__atomic_compare_exchange_n(at, &old, by, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);	\
		return old;										\
	}												\
}

ATOMIC(atomic32, uint32_t)
ATOMIC(atomic64, uint64_t)

static void atomic(struct machine *m, const struct bpf_insn *i, uint64_t addr)
{
	uint64_t (*op)(uint64_t, int, uint64_t, uint64_t) = vm_size(i->code) == 4 ? atomic32 : atomic64;
	uint64_t old = op(addr, i->imm, m->r[i->src_reg], m->r[0]);

	if (i->imm == BPF_CMPXCHG)
		m->r[0] = old;
	else if (i->imm & BPF_FETCH)
		m->r[i->src_reg] = old;
}

static int memory(struct machine *m, const struct bpf_insn *i)
{
	bool is_load = BPF_CLASS(i->code) == BPF_LDX;
	unsigned int size = vm_size(i->code);
	uint64_t addr = m->r[is_load ? i->src_reg : i->dst_reg] + (uint64_t)(int64_t)i->off, v;

	if (!m->p->notes[m->pc].safe) {
		if (BPF_CLASS(i->code) == BPF_STX && BPF_MODE(i->code) == BPF_ATOMIC && addr % size)
			return -EFAULT;
		if (!vm_reach(m->p, m->t, addr, size, !is_load))
			return -EFAULT;
	}
	if (is_load) {
		v = load(addr, size);
		m->r[i->dst_reg] = BPF_MODE(i->code) == VM_MEMSX ? (uint64_t)extend(v, size * 8) : v;
	} else if (BPF_CLASS(i->code) == BPF_ST) {
		store(addr, size, (uint64_t)(int64_t)i->imm);
	} else if (BPF_MODE(i->code) == BPF_ATOMIC) {
		atomic(m, i, addr);
	} else {
		store(addr, size, m->r[i->src_reg]);
	}
	return 0;
}

/* --- calls ------------------------------------------------------------------------------------------- */

static void open_frame(struct machine *m, const struct vm_func *func)
{
	const struct frame *caller = &m->frames[m->nframes - 1];
	struct frame *f = &m->frames[m->nframes++];

	memcpy(f->saved, &m->r[6], sizeof(f->saved));
	f->func = func;
	f->back = m->pc + 1;
	f->kind = VM_CALL_FUNC;
	m->r[10] -= caller->func->frame;
	m->pc = func->start;
}

static void close_frame(struct machine *m)
{
	const struct frame *f = &m->frames[--m->nframes];

	memcpy(&m->r[6], f->saved, sizeof(f->saved));
	m->r[10] += f[-1].func->frame;
	m->pc = f->back;
}

/* The callback of the last frame returned; *more: it must run again. */
static int next_turn(struct machine *m, struct frame *f, bool *more)
{
	uint64_t cost = f->func->cost;

	*more = f->turn < f->turns;
	if (!*more)
		return 0;
	if (m->t->budget < cost)
		return -ETIME;
	m->t->budget -= cost;
	m->r[1] = f->turn++;
	m->r[2] = f->arg;
	return 0;
}

static int next_element(struct machine *m, struct frame *f, bool *more)
{
	int err = vm_walk_next(m->p, m->t, &f->walk, f->func->cost);

	*more = err > 0;
	if (err <= 0)
		return err;
	m->r[1] = (uint64_t)(uintptr_t)f->walk.handle;
	m->r[2] = m->t->args[1];
	m->r[3] = m->t->args[2];
	m->r[4] = f->walk.arg;
	return 0;
}

/* Start the next turn of the last frame's loop, or continue after the loop. */
static int go_on(struct machine *m, bool stop)
{
	struct frame *f = &m->frames[m->nframes - 1];
	bool more = false;
	int err = 0;

	if (!stop)
		err = f->kind == VM_CALL_LOOP ? next_turn(m, f, &more) : next_element(m, f, &more);
	if (err) {
		m->pc = f->back - 1;
	} else if (more) {
		m->pc = f->func->start;
	} else {
		m->r[0] = f->kind == VM_CALL_LOOP ? f->turn : f->walk.turns;
		close_frame(m);
	}
	return err;
}

static int start_loop(struct machine *m, const struct vm_func *func)
{
	uint32_t turns = (uint32_t)m->r[1];
	struct frame *f;

	if (m->r[4] || turns > VM_MAX_LOOPS || !turns) {
		m->r[0] = m->r[4] ? (uint64_t)-EINVAL : turns ? (uint64_t)-E2BIG : 0;
		m->pc++;
		return 0;
	}
	open_frame(m, func);
	f = &m->frames[m->nframes - 1];
	f->kind = VM_CALL_LOOP;
	f->turn = 0;
	f->turns = turns;
	f->arg = m->r[3];
	return go_on(m, false);
}

static int start_walk(struct machine *m, const struct vm_func *func)
{
	struct frame *f;

	if (m->r[4]) {
		m->r[0] = (uint64_t)-EINVAL;
		m->pc++;
		return 0;
	}
	open_frame(m, func);
	f = &m->frames[m->nframes - 1];
	f->kind = VM_CALL_EACH;
	f->walk = (struct vm_walk){ .handle = (void *)(uintptr_t)m->r[1], .arg = m->r[3] };
	return go_on(m, false);
}

static int call(struct machine *m)
{
	const struct vm_prog *p = m->p;
	const struct vm_note *note = &p->notes[m->pc];
	const struct vm_helper *h = &p->spec.helpers[note->to];

	switch (note->call) {
	case VM_CALL_FUNC:
		open_frame(m, &p->funcs[note->to]);
		return 0;
	case VM_CALL_LOOP:
		return start_loop(m, &p->funcs[note->to]);
	case VM_CALL_EACH:
		return start_walk(m, &p->funcs[note->to]);
	case VM_CALL_HELPER:
		if (h->fn)
			m->r[0] = h->fn(m->r[1], m->r[2], m->r[3], m->r[4], m->r[5], m->t);
		else
			m->r[0] = h->ret == VM_RET_CTX ? (uint64_t)(uintptr_t)m->t->ctx : m->t->values[h->value];
		break;
	default:
		memcpy(m->t->args, &m->r[1], sizeof(m->t->args));
		if (!vm_call_checked(p, m->t, m->pc))
			return -EFAULT;
		m->r[0] = m->t->ret;
		break;
	}
	m->pc++;
	return 0;
}

/* Return from a function: a call or a callback. */
static int leave(struct machine *m)
{
	if (m->frames[m->nframes - 1].kind != VM_CALL_FUNC)
		return go_on(m, m->r[0] != 0);
	close_frame(m);
	return 0;
}

static void may_goto(struct machine *m, const struct bpf_insn *i)
{
	uint64_t cost = m->frames[m->nframes - 1].func->cost;

	if (m->t->budget < cost + vm_reserve(&m->p->spec, i)) {
		m->pc += 1 + (uint32_t)i->off;
		return;
	}
	m->t->budget -= cost;
	m->pc++;
}

static int step(struct machine *m, const struct bpf_insn *i)
{
	int err = 0;

	switch (BPF_CLASS(i->code)) {
	case BPF_ALU:
	case BPF_ALU64:
		alu(m, i);
		m->pc++;
		return 0;
	case BPF_LD:
		m->r[i->dst_reg] = vm_imm64(m->p, i);
		m->pc += 2;
		return 0;
	case BPF_JMP:
	case BPF_JMP32:
		if (BPF_OP(i->code) == BPF_CALL)
			return call(m);
		if (BPF_OP(i->code) == BPF_EXIT)
			return leave(m);
		if (i->code == VM_MAY_GOTO)
			may_goto(m, i);
		else if (BPF_OP(i->code) == BPF_JA)
			m->pc += 1 + (uint32_t)(BPF_CLASS(i->code) == BPF_JMP32 ? i->imm : i->off);
		else
			m->pc += 1 + (holds(m, i) ? (uint32_t)i->off : 0);
		return 0;
	default:
		err = memory(m, i);
		if (!err)
			m->pc++;
		return err;
	}
}

int vm_interpret(const struct vm_prog *p, struct vm_thread *t, void *ctx, uint64_t *ret)
{
	struct machine m = { .p = p, .t = t, .nframes = 1 };
	int err = 0;

	t->ctx = ctx;
	t->budget = p->spec.budget;
	m.frames[0].func = &p->funcs[0];
	m.r[1] = (uint64_t)(uintptr_t)ctx;
	m.r[10] = (uint64_t)(uintptr_t)(t->stack + VM_STACK);
	while (!err && (m.nframes > 1 || p->insns[m.pc].code != (BPF_JMP | BPF_EXIT)))
		err = step(&m, &p->insns[m.pc]);
	if (err)
		t->fault_insn = m.pc;
	else
		*ret = m.r[0];
	return err;
}
