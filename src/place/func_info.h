/*
 * The type information that the kernel demands of a program with callbacks (bpf_loop): a BTF function for
 * each subprogram.  It says nothing but "a static function" of all of them, which makes the verifier look at
 * each call by itself.  Source: kernel/bpf/verifier.c, check_btf_func and check_ld_imm (BPF_PSEUDO_FUNC).
 */
#ifndef DTAP_PLACE_FUNC_INFO_H
#define DTAP_PLACE_FUNC_INFO_H

#include <stdint.h>

#include <linux/bpf.h>

struct func_info {
	int btf_fd;			/* -1: the program has no callbacks and needs none */
	struct bpf_func_info *v;	/* by instruction */
	uint32_t n;
};

/* For the @n instructions at @insns.  0, or a negative errno: *ret needs no func_info_fini. */
int func_info_make(const struct bpf_insn *insns, uint32_t n, struct func_info *ret);
void func_info_fini(struct func_info *f);

#endif
