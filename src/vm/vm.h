/*
 * eBPF in user space: a check at load time, an interpreter, and a compiler for x86-64.
 *
 * Programs come from bpf/ but are trusted no more than the kernel trusts them, and the memory they work on is shared
 * with processes that may have corrupted it.  Safety has two halves:
 *
 * - vm_load checks what does not depend on data: every opcode and field is known, jumps lead to an instruction of the
 *   same function and make no loop without may_goto, calls do not recurse and nest 8 deep at most, registers are
 *   written before they are read, the frames of a chain of calls fit the 512 bytes of stack, helpers get arguments of
 *   the types in their row.  Pointers to the stack, the context or a map's value plus a constant are tracked, and
 *   accesses through them are checked here, too; as are those to an element that a helper has found, once a branch has
 *   compared it with 0.
 * - At run time every other access is compared with the few regions that the program may access (its stack, its
 *   context, the maps' memory).  Proving those accesses at load time would need the kernel verifier's value ranges
 *   and spilled pointers.  The comparison costs about a nanosecond and is right about pointers from
 *   shared memory, too; an access outside ends the run with -EFAULT.
 *
 * Every run ends.  Each loop made of jumps contains a may_goto, so a run takes at most VM_MAX_COST instructions from
 * one may_goto to the next, or to the end; vm_load computes that number.  A run has a budget of instructions.  Each
 * may_goto is charged the longest path to the next one; each turn of bpf_loop and each element of
 * bpf_for_each_map_elem the longest path through its callback; an element that is skipped, one instruction.  When
 * little of the budget is left may_goto jumps, which ends its loop; when nothing is left the run ends with -ETIME.  A
 * may_goto with the immediate 1 may use half of that last part: it is for the code with which a program handles
 * having run out of time.
 *
 * The instruction set is the kernel's, version 4 (sign-extending loads and moves, signed division, bswap, long
 * jumps), with its semantics: division by 0 gives 0, modulo by 0 the dividend, shift counts are taken modulo the
 * width.  Atomic operations must be aligned.  Little endian machines only.
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
	VM_STACK = 512,			/* bytes for the frames of all nested calls */
	VM_MAX_FRAMES = 8,		/* nested calls and callbacks, including the program itself */
	VM_MAX_INSNS = 1 << 16,
	VM_MAX_COST = 1000000,		/* instructions of a run, not counting repeated turns of loops */
	VM_MAX_LOOPS = 1 << 23,		/* turns of one bpf_loop; more are -E2BIG to the program */
	VM_DEFAULT_BUDGET = 1 << 24,	/* instructions in loops' turns */
	VM_VALUES = 4,
};

/* The state that one thread needs to run programs, used by one run at a time (a helper starts no other). */
struct vm_thread {
	uint8_t stack[VM_STACK] __attribute__((aligned(16)));	/* initialised once; keeps the last run's contents */
	void *user;			/* for the helpers */
	/* Out: the instruction at which a run failed, as an index into vm_spec.insns. */
	uint32_t fault_insn;
	uint64_t values[VM_VALUES];	/* the results of helpers without a function */
	/* Private to the engine. */
	void *ctx;
	uint64_t budget, ret, args[5];
	uint64_t native_sp, native_fault;
};

/* --- what a program may use -------------------------------------------------------------------------- */

/*
 * A map: an ld_imm64 with BPF_PSEUDO_MAP_FD or BPF_PSEUDO_MAP_VALUE has the index of its row as the immediate.  All
 * pointers to values that helpers return must be inside @base, @size, aligned to 8.
 */
struct vm_map {
	void *handle;			/* passed to helpers as the map */
	void *base;			/* or NULL: the program has no pointers into it */
	uint64_t size;
	uint32_t key_size, value_size;
	bool readonly;
	bool walked;			/* vm_spec.next can iterate over it */
	/*
	 * Where compiled code finds an element without the call of a VM_RET_ELEM helper, which gives the same; @word is an
	 * index into vm_thread.values, @off an offset from the address there.
	 *
	 * FIXED: the element, for every key.  LAST: a pointer, NULL or a struct abi_elem that is followed by its key and its
	 * value; it is the one if it is live and its key is equal.
	 */
	enum { VM_QUICK_NONE, VM_QUICK_FIXED, VM_QUICK_LAST } quick;
	uint32_t word;
	uint64_t off;
};

/* One element of a map; numbers ascend from 0. */
struct vm_elem {
	uint64_t number;
	uint64_t key, value;		/* addresses in the program's memory */
};

enum vm_arg {
	VM_ARG_NONE,			/* absent, like those after it */
	VM_ARG_ANY,
	VM_ARG_MAP,			/* known when loading, or its handle is looked up at run time */
	VM_ARG_KEY, VM_ARG_VALUE,	/* readable; key_size or value_size bytes of the preceding VM_ARG_MAP */
	VM_ARG_READ, VM_ARG_WRITE,	/* memory; the next argument, a VM_ARG_SIZE, is its size */
	VM_ARG_SIZE,			/* 32 bits */
};

enum vm_ret {
	VM_RET_VALUE,
	VM_RET_ELEM,			/* of the map in the first argument, the key is the second: value_size bytes; or 0 */
	VM_RET_VOID,			/* the program must not read r0 */
	VM_RET_CTX,			/* the context; there is no function */
	VM_RET_SCRATCH,			/* memory of vm_spec.scratch's size; there is no function */
};

/*
 * A helper: a function of the host, under the kernel's number or one of the caller's own.  It must return.  Without a
 * function the result is vm_thread.values[value], which costs no call.
 */
struct vm_helper {
	uint32_t number;
	uint64_t (*fn)(uint64_t r1, uint64_t r2, uint64_t r3, uint64_t r4, uint64_t r5, struct vm_thread *t);
	enum vm_ret ret;
	enum vm_arg args[5];
	uint32_t value;
};

/* All but insns must outlive the program.  The engine itself implements bpf_loop and bpf_for_each_map_elem. */
struct vm_spec {
	const struct bpf_insn *insns;
	uint32_t ninsns;
	const struct vm_map *maps;
	uint32_t nmaps;
	const struct vm_helper *helpers;
	uint32_t nhelpers;
	uint32_t ctx_size;		/* readable bytes at the context, which is aligned to 8 */
	bool ctx_writable;
	uint32_t scratch;		/* bytes at the address that VM_RET_SCRATCH returns, aligned to 8; 0: none */
	uint64_t budget;		/* 0: VM_DEFAULT_BUDGET */
	/*
	 * The first element of the map whose number is not below @from.  False: there is none.  Elements may be added
	 * and deleted during the iteration, also by the callback.  NULL: programs cannot iterate over maps.
	 */
	bool (*next)(void *handle, struct vm_thread *t, uint64_t from, struct vm_elem *ret);
};

/* --- programs ---------------------------------------------------------------------------------------- */

struct vm_prog;

struct vm_error {
	uint32_t insn;
	char text[100];			/* "jump out of the function"; no newline */
};

/* Check @spec and load it.  0; -EINVAL with @err set when it is refused; -ENOMEM. */
int vm_load(const struct vm_spec *spec, struct vm_prog **ret, struct vm_error *err);
void vm_free(struct vm_prog *p);

/*
 * Compile for this machine.  0; -ENOTSUP when there is no compiler for it, -ENOMEM, or the error with which the
 * system refuses executable memory (-EACCES, -EPERM under a policy).  After an error the program runs in the
 * interpreter; the caller should tell the user.
 */
int vm_compile(struct vm_prog *p);

/*
 * Run the program: the compiled code if vm_compile succeeded, else the interpreter.  0 and r0 in *ret; -EFAULT after
 * an access outside of the program's memory or an unaligned atomic access; -ETIME when the budget is used up.  Writes
 * made before are kept.
 */
int vm_run(const struct vm_prog *p, struct vm_thread *t, void *ctx, uint64_t *ret);
int vm_interpret(const struct vm_prog *p, struct vm_thread *t, void *ctx, uint64_t *ret);

/* Is @value among the constants that the program puts in r0, and so perhaps its result? */
bool vm_gives(const struct vm_prog *p, int32_t value);

#endif
