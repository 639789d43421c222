/*
 * eBPF in user space: a check at load time, an interpreter, and a compiler for x86-64.
 *
 * What runs here comes from bpf/ but is trusted no more than the kernel trusts it, and memory it works on is
 * shared with processes that may have scribbled over it.  Safety is in two halves:
 *
 * - When loading (vm_load), what does not depend on data is decided: every opcode and field is known, jumps
 *   lead to an instruction of the same function and make no loop without may_goto, calls do not recurse and nest 8 deep at most, registers
 *   are written before they are read, the frames of a chain of calls fit the 512 bytes of stack, helpers get
 *   the arguments their row asks for.  Pointers that are the stack, the context or a map's value plus a
 *   constant are followed, and accesses through them decided here, too.
 * - When running, every other access is compared with the few regions that the program may touch (its stack,
 *   its context, the maps' memory).  Proving those accesses instead would take the kernel's ranges of numbers,
 *   its null checks, its spilled pointers; the comparison costs about a nanosecond, cannot be wrong about a
 *   pointer that came from shared memory, and a failed one ends the run with -EFAULT.
 *
 * Runs end: each loop that jumps make has a may_goto in it, so from one of them to the next, or the end, a run takes
 * at most VM_MAX_COST instructions, which is computed when loading.  Each may_goto is charged the longest of those
 * ways, each turn of bpf_loop and each element of bpf_for_each_map_elem the longest way through its callback, from a
 * budget that is the whole run's; an element that is passed over is charged one instruction.
 * When there is not much left may_goto goes to its target; an exhausted one ends the run with -ETIME.  A may_goto with
 * the immediate 1 goes on for half of what is left then, for what a program does about having run out of time.
 *
 * The instruction set is the kernel's up to version 4 of the set (sign-extending loads and moves, signed
 * division, bswap, long jumps), with its semantics: division by 0 gives 0, modulo by 0 the dividend, shifts
 * take the count modulo the width.  Atomic operations must be aligned.  Little endian machines only.
 *
 * A program may be run by several threads at once, each with its own struct vm_thread.
 */
#ifndef DTAP_VM_VM_H
#define DTAP_VM_VM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <linux/bpf.h>

enum {
	VM_STACK = 512,			/* bytes, for the frames of all calls */
	VM_MAX_FRAMES = 8,		/* calls and callbacks inside each other, with the program itself */
	VM_MAX_INSNS = 1 << 16,
	VM_MAX_COST = 1000000,		/* instructions that a run takes without its loops' turns */
	VM_MAX_LOOPS = 1 << 23,		/* turns of one bpf_loop; more are -E2BIG to the program */
	VM_DEFAULT_BUDGET = 1 << 24,	/* instructions in loops' turns */
	VM_VALUES = 4,
};

/* What one thread needs to run programs: its own, used by one run at a time (a helper starts no other). */
struct vm_thread {
	uint8_t stack[VM_STACK] __attribute__((aligned(16)));	/* of the last run; set to anything, once */
	void *user;			/* the helpers' */
	/* Out: after a run that failed, where, as an index into vm_spec.insns. */
	uint32_t fault_insn;
	uint64_t values[VM_VALUES];	/* what helpers without a function return */
	/* The engine's own. */
	void *ctx;
	uint64_t budget, ret, args[5];
	uint64_t native_sp, native_fault;
};

/* --- what a program may use -------------------------------------------------------------------------- */

/*
 * A map: an ld_imm64 with BPF_PSEUDO_MAP_FD or BPF_PSEUDO_MAP_VALUE has the index of its row as the immediate.
 * All pointers to values that helpers hand out must lie in @base, @size, aligned to 8.
 */
struct vm_map {
	void *handle;			/* what helpers are given */
	void *base;			/* or NULL: the program has no pointers into it */
	uint64_t size;
	uint32_t key_size, value_size;
	bool readonly;
	bool walked;			/* vm_spec.next has its elements */
};

/* One element of a map: numbers go up, from 0 on. */
struct vm_elem {
	uint64_t number;
	uint64_t key, value;		/* addresses in the program's memory */
};

enum vm_arg {
	VM_ARG_NONE,			/* not given; so are those behind it */
	VM_ARG_ANY,
	VM_ARG_MAP,			/* vm_map.handle; known when loading, or else found among the maps when it runs */
	VM_ARG_KEY, VM_ARG_VALUE,	/* readable for the key_size, value_size of the map before it */
	VM_ARG_READ, VM_ARG_WRITE,	/* usable for as many bytes as the VM_ARG_SIZE behind it says */
	VM_ARG_SIZE,			/* 32 bits */
};

enum vm_ret {
	VM_RET_VALUE,
	VM_RET_VOID,			/* r0 is not to be read */
	VM_RET_CTX,			/* the context; there is no function */
	VM_RET_SCRATCH,			/* memory of vm_spec.scratch's size; there is no function */
};

/*
 * A function of the host, by the kernel's number or one of the caller's own.  It may not unwind.  Without one the
 * result is vm_thread.values[value], which costs no call.
 */
struct vm_helper {
	uint32_t number;
	uint64_t (*fn)(uint64_t r1, uint64_t r2, uint64_t r3, uint64_t r4, uint64_t r5, struct vm_thread *t);
	enum vm_ret ret;
	enum vm_arg args[5];
	uint32_t value;
};

/* All but insns must stay for as long as the program lives.  bpf_loop and bpf_for_each_map_elem are the engine's own. */
struct vm_spec {
	const struct bpf_insn *insns;
	uint32_t ninsns;
	const struct vm_map *maps;
	uint32_t nmaps;
	const struct vm_helper *helpers;
	uint32_t nhelpers;
	uint32_t ctx_size;		/* readable bytes at the context, which is aligned to 8 */
	bool ctx_writable;
	uint32_t scratch;		/* bytes at the address that VM_RET_SCRATCH gives, aligned to 8; 0: there are none */
	uint64_t budget;		/* 0: VM_DEFAULT_BUDGET */
	/*
	 * The first element of the map whose number is not below @from.  False: there is none.  Elements may come and go
	 * meanwhile, also by the callback's doing.  NULL: no map is walked.
	 */
	bool (*next)(void *handle, struct vm_thread *t, uint64_t from, struct vm_elem *ret);
};

/* --- programs ---------------------------------------------------------------------------------------- */

struct vm_prog;

struct vm_error {
	uint32_t insn;
	char text[100];			/* "jump out of the function"; no newline */
};

/*
 * Check @spec and make a program of it.  0, -EINVAL with @err set when it is refused, -ENOMEM.
 */
int vm_load(const struct vm_spec *spec, struct vm_prog **ret, struct vm_error *err);
void vm_free(struct vm_prog *p);

/*
 * Compile for this machine.  0; -ENOTSUP when there is no compiler for it, -ENOMEM, or why the system gives no
 * executable memory (-EACCES, -EPERM under a policy against it).  The program runs in any case: then in
 * the interpreter, and that is to be said to the user.
 */
int vm_compile(struct vm_prog *p);

/*
 * Run: compiled if vm_compile has been, else interpreted.  0 and r0 in *ret; -EFAULT after an access outside of
 * the program's memory or an unaligned atomic one; -ETIME when the budget is used up.  What was written
 * before stays.
 */
int vm_run(const struct vm_prog *p, struct vm_thread *t, void *ctx, uint64_t *ret);
int vm_interpret(const struct vm_prog *p, struct vm_thread *t, void *ctx, uint64_t *ret);

#endif
