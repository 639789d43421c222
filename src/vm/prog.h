/*
 * A loaded and checked program, for the interpreter and the compiler.
 */
#ifndef DTAP_VM_PROG_H
#define DTAP_VM_PROG_H

#include "vm/vm.h"

/* Version 4 of the instruction set, which the kernel headers of some build systems do not have yet. */
enum {
	VM_MEMSX = 0x80,	/* mode of BPF_LDX: sign-extending */
	VM_FUNC_LOOP = 181,	/* BPF_FUNC_loop */
	VM_FUNC_EACH = 164,	/* BPF_FUNC_for_each_map_elem */
	VM_PSEUDO_FUNC = 4,	/* BPF_PSEUDO_FUNC */
	VM_MAY_GOTO = BPF_JMP | 0xe0,	/* BPF_JCOND's only form */
	VM_LAST = 1,			/* immediate of a may_goto, unknown to the kernel: see vm.h */
};

enum vm_call {
	VM_CALL_FUNC,		/* to: the function */
	VM_CALL_LOOP,		/* to: the callback */
	VM_CALL_EACH,		/* likewise, for the elements of map */
	VM_CALL_HELPER,		/* to: the row; no argument is a pointer, or all were checked when loading */
	VM_CALL_CHECKED,	/* likewise, but arguments must be checked at run time */
};

/* What the check found about an instruction. */
struct vm_note {
	bool safe;		/* a memory access known to be inside, and aligned if it is atomic */
	uint8_t call;		/* enum vm_call */
	uint32_t to;
	uint32_t map;		/* VM_CALL_CHECKED: the map whose key or value is an argument, or VM_ANY_MAP */
};

enum { VM_ANY_MAP = UINT32_MAX };	/* the map in the VM_ARG_MAP argument */

struct vm_func {
	uint32_t start, end;	/* instructions, the end exclusive */
	uint32_t frame;		/* bytes of stack, a multiple of 16 */
	uint32_t cost;		/* instructions on the longest path through it, calls included */
};

/*
 * The last part of a run's budget.  When it is reached may_goto jumps, which ends loops; turns of bpf_loop continue.
 */
static inline uint64_t vm_reserve(const struct vm_spec *s, const struct bpf_insn *may_goto)
{
	uint64_t reserve = s->budget / 8 < 1 << 22 ? s->budget / 8 : 1 << 22;

	return may_goto->imm == VM_LAST ? reserve / 2 : reserve;
}

struct vm_code;

struct vm_prog {
	struct vm_spec spec;	/* insns is the copy below */
	struct bpf_insn *insns;
	struct vm_note *notes;	/* one for each instruction */
	struct vm_func *funcs;	/* [0] is the program itself; sorted by start */
	uint32_t nfuncs;
	struct vm_code *code;	/* compiled, or NULL */
	int (*entry)(struct vm_thread *t, void *ctx);	/* of the compiled code */
};

/*
 * Run @p, which is compiled: 0 and the result in t->ret, or an error as from vm_run, which sets t->fault_insn, too.
 */
static inline int vm_enter(const struct vm_prog *p, struct vm_thread *t, void *ctx)
{
	t->ctx = ctx;
	t->budget = p->spec.budget;
	return p->entry(t, ctx);
}

/* May the running program use the @size bytes at @addr? */
bool vm_reach(const struct vm_prog *p, const struct vm_thread *t, uint64_t addr, uint64_t size, bool write);

/* Make the VM_CALL_CHECKED at @insn with t->args; the result goes to t->ret.  False: an argument is bad. */
bool vm_call_checked(const struct vm_prog *p, struct vm_thread *t, uint32_t insn);

/* A bpf_for_each_map_elem in progress. */
struct vm_walk {
	void *handle;
	uint64_t from;		/* the next element has at least this number */
	uint64_t turns;
	uint64_t arg;		/* passed to the callback */
};

/*
 * Put the next element's key and value in t->args[1] and [2].  1; 0: there is no more; -ETIME.  A turn costs @cost.
 */
int vm_walk_next(const struct vm_prog *p, struct vm_thread *t, struct vm_walk *w, uint32_t cost);

/* The 64 bits that the ld_imm64 @i loads. */
uint64_t vm_imm64(const struct vm_prog *p, const struct bpf_insn *i);

static inline unsigned int vm_size(uint8_t code)
{
	switch (BPF_SIZE(code)) {
	case BPF_B:
		return 1;
	case BPF_H:
		return 2;
	case BPF_W:
		return 4;
	default:
		return 8;
	}
}

/* --- compiled code, of which each architecture has its own ------------------------------------------- */

/* Compile @p to p->code; errors as from vm_compile. */
int vm_code_new(struct vm_prog *p);
void vm_code_free(struct vm_code *c);
/* Set t->fault_insn after a failed run of compiled code. */
void vm_code_fault(const struct vm_prog *p, struct vm_thread *t);

/*
 * Map executable memory with a copy of @bytes.  0 or a negative errno.  It is never writable while it is executable.
 * Unmap it with munmap.
 */
int vm_exec_map(const void *bytes, size_t size, void **ret);

#endif
