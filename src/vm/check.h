/*
 * Shared by the passes of the check (check.c), private to them.
 */
#ifndef DTAP_VM_CHECK_H
#define DTAP_VM_CHECK_H

#include "vm/prog.h"

/* ELEM: an element of a map, which a helper has found; MAYBE: the same, or 0. */
enum kind { UNSET, NUMBER, FRAME, CTX, VALUE, SCRATCH, MAP, FUNC, ELEM, MAYBE };

struct val {
	uint8_t kind;
	uint32_t index;		/* VALUE, MAP, ELEM, MAYBE: the map; FUNC: the function; NUMBER: 1 if it is known */
	int32_t off;		/* FRAME, CTX, VALUE, SCRATCH, ELEM: the offset; a known NUMBER: its value, not negative */
};

struct state {
	bool reached;
	struct val r[11];
};

enum mark { NEW, OPEN, DONE };

struct check {
	struct vm_prog *p;
	struct vm_error *err;
	uint32_t n;
	bool *second;		/* the second half of an ld_imm64 */
	uint32_t *func_at;	/* by instruction: 1 + the function that starts there */
	enum mark *marks;	/* by function */
	uint32_t *depth;	/* by function: the depth of nested frames from it on, itself included */
	uint32_t *order, norder;	/* callees before callers */
	uint32_t *seq;		/* each function's instructions in topological order, at its start */
	enum mark *seen;	/* by instruction, while seq is computed */
	uint32_t *ways;		/* by instruction: the length of the longest path to it */
	struct state *states;	/* by instruction: the state before it */
	bool *called;		/* by function: is it called? */
};

/* Report an error at instruction @insn.  Returns -EINVAL. */
int vm_refuse(struct check *c, uint32_t insn, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

static inline bool is_imm64(const struct bpf_insn *i)
{
	return i->code == (BPF_LD | BPF_IMM | BPF_DW);
}

static inline bool is_func_ref(const struct bpf_insn *i)
{
	return is_imm64(i) && i->src_reg == VM_PSEUDO_FUNC;
}

static inline bool is_func_call(const struct bpf_insn *i)
{
	return i->code == (BPF_JMP | BPF_CALL) && i->src_reg == BPF_PSEUDO_CALL;
}

static inline bool is_exit(const struct bpf_insn *i)
{
	return i->code == (BPF_JMP | BPF_EXIT);
}

static inline bool is_may_goto(const struct bpf_insn *i)
{
	return i->code == VM_MAY_GOTO;
}

static inline bool is_goto(const struct bpf_insn *i)
{
	return (BPF_CLASS(i->code) == BPF_JMP || BPF_CLASS(i->code) == BPF_JMP32) && BPF_OP(i->code) == BPF_JA;
}

static inline bool is_branch(const struct bpf_insn *i)
{
	return (BPF_CLASS(i->code) == BPF_JMP || BPF_CLASS(i->code) == BPF_JMP32) && BPF_OP(i->code) != BPF_CALL &&
	       BPF_OP(i->code) != BPF_EXIT && BPF_OP(i->code) != BPF_JA;
}

/* The target of the goto or branch at @at. */
static inline int64_t jump_to(const struct bpf_insn *i, uint32_t at)
{
	return (int64_t)at + 1 + (i->code == (BPF_JMP32 | BPF_JA) ? i->imm : i->off);
}

/* The register that @i writes, or -1; not for calls. */
int vm_written(const struct bpf_insn *i);

/* The function that the call or reference at @at refers to. */
uint32_t vm_callee(const struct check *c, uint32_t at);

/* The @k-th possible successor of the instruction at @at, or 0 (no successor is instruction 0). */
uint32_t vm_follower(const struct check *c, uint32_t at, int k);

/* The passes: 0, -ENOMEM, or -EINVAL with the reason in c->err. */
int vm_check_shape(struct check *c);
int vm_check_graph(struct check *c);
int vm_check_flow(struct check *c);

#endif
