/*
 * The type information that the kernel demands of a program with callbacks (bpf_loop): a BTF function for each
 * subprogram.  Source: kernel/bpf/verifier.c, check_btf_func and check_ld_imm (BPF_PSEUDO_FUNC).
 *
 * A static function is looked at anew with each call, and all that the verifier knows of the caller goes in.  A global
 * one is looked at once, by what BTF says of its parameters (kernel/bpf/btf.c, btf_prepare_func_args): numbers,
 * pointers to memory of a size, and pointers to anything (declaration tag arg:untrusted, 6.17).
 */
#ifndef DTAP_PLACE_FUNC_INFO_H
#define DTAP_PLACE_FUNC_INFO_H

#include <stdbool.h>
#include <stdint.h>

#include <linux/bpf.h>

struct ebpf_func;

struct func_info {
	int btf_fd;			/* -1: the program has no callbacks and needs none */
	struct bpf_func_info *v;	/* by instruction */
	uint32_t n;
};

/*
 * For the @n instructions at @insns, of whose subprograms the @nglobals at @globals, sorted, are to be global
 * functions.  0, or a negative errno: *ret needs no func_info_fini.
 */
int func_info_make(const struct bpf_insn *insns, uint32_t n, const struct ebpf_func *globals, uint32_t nglobals,
		   struct func_info *ret);
void func_info_fini(struct func_info *f);

#endif
