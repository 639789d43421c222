/*
 * The type information that the kernel requires for a program with callbacks (bpf_loop): a BTF function for each
 * subprogram.  Source: kernel/bpf/verifier.c, check_btf_func and check_ld_imm (BPF_PSEUDO_FUNC).
 *
 * The verifier checks a static function again for each call, with all that it knows about the caller's registers.  It
 * checks a global function once, with the parameter types from BTF (kernel/bpf/btf.c, btf_prepare_func_args): numbers,
 * pointers to memory of a given size, and untrusted pointers (declaration tag arg:untrusted, 6.17).
 */
#ifndef DTAP_PLACE_FUNC_INFO_H
#define DTAP_PLACE_FUNC_INFO_H

#include <stdbool.h>
#include <stdint.h>

#include <linux/bpf.h>

struct ebpf_func;

struct func_info {
	int btf_fd;			/* -1: the program has no callbacks and needs none */
	struct bpf_func_info *v;	/* in order of instructions */
	uint32_t n;
};

/*
 * For the @n instructions at @insns; of their subprograms, the @nglobals at @globals (sorted) become global functions.
 * 0, or a negative errno: *ret then needs no func_info_fini.
 */
int func_info_make(const struct bpf_insn *insns, uint32_t n, const struct ebpf_func *globals, uint32_t nglobals,
		   struct func_info *ret);
void func_info_fini(struct func_info *f);

#endif
