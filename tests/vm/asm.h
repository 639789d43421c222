/*
 * eBPF as text to instructions, in the form that ebpf_disasm and the kernel's verifier print:
 *
 *	r1 = -5		w1 += r2	r1 s>>= 3	r1 s/= r2	r1 = -r1	r1 = (s8)r2
 *	r1 = be16 r1	r1 = le32 r1	r1 = bswap64 r1
 *	r1 = 0x123456789 ll		r1 = map[0]	r1 = map[0] + 8		r1 = code LABEL
 *	r0 = *(u32 *)(r1 + 8)		r0 = *(s8 *)(r1 + 8)
 *	*(u8 *)(r10 - 8) = r1		*(u64 *)(r10 - 8) = -1
 *	lock *(u64 *)(r1 + 0) += r2	r2 = atomic_fetch_add((u64 *)(r1 + 0), r2)	(or, and, xor)
 *	r2 = atomic_xchg((u64 *)(r1 + 0), r2)	r0 = atomic_cmpxchg((u64 *)(r1 + 0), r0, r2)
 *	goto LABEL	gotol LABEL	if r1 s> -1 goto LABEL	if w1 & w2 goto LABEL
 *	call 5		call LABEL	exit		raw CODE DST SRC OFF IMM
 *
 * w registers make it 32 bits wide.  "LABEL:" stands on its own line; ; begins a comment.
 */
#ifndef DTAP_TESTS_VM_ASM_H
#define DTAP_TESTS_VM_ASM_H

#include <stdint.h>

#include <linux/bpf.h>

/* Up to @max instructions from @text to @insns: how many, or -1 with what is wrong (and a line) at *err. */
int asm_read(const char *text, struct bpf_insn *insns, int max, char err[200]);

#endif
