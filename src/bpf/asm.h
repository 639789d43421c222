/*
 * The assembler: a growing list of eBPF instructions with labels, and what its linker and loader need (maps, runtime
 * functions, script lines).
 *
 * Jumps reach any label; in a program of more than 32 Ki instructions, one farther than 16 Ki takes several, and needs
 * Linux 6.6.
 */
#ifndef DTAP_BPF_ASM_H
#define DTAP_BPF_ASM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <linux/bpf.h>

#include "bpf/ebpf.h"
#include "bpf/rt.h"

enum { R0, R1, R2, R3, R4, R5, R6, R7, R8, R9, R10 };

struct asm_fix {
	uint32_t insn, label;
};

struct asm_call {
	uint32_t insn;
	enum rt_fn fn;
};

struct assembler {
	struct arena *arena;
	struct bpf_insn *insns;
	uint32_t n;
	size_t cap;
	uint32_t *labels;		/* where each is; ASM_UNSET before it is bound */
	uint32_t nlabels;
	size_t labels_cap;
	struct asm_fix *fixes;
	uint32_t nfixes;
	size_t fixes_cap;
	struct asm_call *calls;
	uint32_t ncalls;
	size_t calls_cap;
	struct ebpf_reloc *relocs;
	uint32_t nrelocs;
	size_t relocs_cap;
	struct ebpf_line *lines;
	uint32_t nlines;
	size_t lines_cap;
};

enum { ASM_UNSET = 0xffffffff };

/* Since 6.9 in linux/bpf.h, which Debian 12's headers precede: enum bpf_cond_pseudo_jmp. */
enum { ASM_JCOND = 0xe0, ASM_MAY_GOTO = 0 };

/* The immediate of asm_last_goto. */
enum { ASM_LAST = 1 };

/* Create a label for jumps; bind it to the instruction that is generated next. */
uint32_t asm_label(struct assembler *a);
void asm_bind(struct assembler *a, uint32_t label);

/* Does a jump lead to @label?  The kernel refuses unreachable code. */
bool asm_wanted(const struct assembler *a, uint32_t label);

/* All instructions from here on belong to this place in the script. */
void asm_line(struct assembler *a, uint32_t clause, struct src_pos pos);

/*
 * One instruction each, named as in the kernel's Documentation/bpf/standardization/instruction-set.rst.  The last
 * letter i: an immediate in place of the source register; offsets are bytes.
 */
void asm_raw(struct assembler *a, struct bpf_insn insn);
void asm_mov(struct assembler *a, int dst, int src);
void asm_imm(struct assembler *a, int dst, int64_t v);			/* dst = v */
void asm_alu(struct assembler *a, int op, int dst, int src);		/* BPF_ADD ... on 64 bits */
void asm_alui(struct assembler *a, int op, int dst, int32_t v);
void asm_neg(struct assembler *a, int dst);
void asm_ld(struct assembler *a, int size, int dst, int base, int off);	/* size: BPF_B ... BPF_DW */
void asm_st(struct assembler *a, int size, int base, int off, int src);
void asm_sti(struct assembler *a, int size, int base, int off, int32_t v);
/* op: BPF_ADD, BPF_ADD | BPF_FETCH, BPF_XCHG ... */
void asm_atomic(struct assembler *a, int op, int size, int base, int off, int src);
void asm_ja(struct assembler *a, uint32_t label);
/* Continue, or jump to @label when the program has been in its loops for too long (kernel 6.9). */
void asm_may_goto(struct assembler *a, uint32_t label);
/* The same, in user space only: it continues for some turns after may_goto has stopped to (vm/vm.h). */
void asm_last_goto(struct assembler *a, uint32_t label);
void asm_j(struct assembler *a, int op, int dst, int src, uint32_t label);
void asm_ji(struct assembler *a, int op, int dst, int32_t v, uint32_t label);
void asm_j32i(struct assembler *a, int op, int dst, int32_t v, uint32_t label);
/* Load map number @map, and the address of byte @off of the only value of an array map; the place fills in both. */
void asm_map(struct assembler *a, int dst, uint32_t map);
void asm_map_value(struct assembler *a, int dst, uint32_t map, uint32_t off);
void asm_helper(struct assembler *a, int helper);
/* R0 = the value in @map whose key lies at R10 + @slot, NULL if there is none. */
void asm_lookup(struct assembler *a, uint32_t map, int slot);
void asm_rt(struct assembler *a, enum rt_fn fn);
void asm_label_addr(struct assembler *a, int dst, uint32_t label);	/* dst = the address of the function there */
void asm_rt_addr(struct assembler *a, int dst, enum rt_fn fn);		/* dst = the address of @fn, for bpf_loop */
void asm_exit(struct assembler *a);

/* Resolve the labels.  The positions of instructions are final only then: far jumps take several instructions. */
void asm_finish(struct assembler *a);

/* Does @v fit an instruction's 32-bit immediate, sign extended? */
static inline bool asm_fits(int64_t v)
{
	return v == (int32_t)v;
}

#endif
