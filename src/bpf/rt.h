/*
 * The runtime library: functions of bpf/rt, compiled to eBPF when dtap is built.
 */
#ifndef DTAP_BPF_RT_H
#define DTAP_BPF_RT_H

#include <stdint.h>

#include <linux/bpf.h>

enum rt_fn {
#define RT_FN(NAME, SYMBOL, PARAMS, WHAT) RT_##NAME,
#include "bpf/rt/rt.def"
#undef RT_FN
	RT_NR
};

/* Instruction @insn calls, or takes the address of, the function numbered @fn in rt_funcs. */
struct rt_ref {
	uint32_t insn, fn;
};

struct rt_func {
	const char *name;
	const struct bpf_insn *insns;
	uint32_t ninsns;
	const struct rt_ref *refs;
	uint32_t nrefs;
};

/* The functions of rt.def by enum rt_fn, and behind them those that they use.  Made by rt/rtgen.c. */
extern const struct rt_func rt_funcs[];
extern const uint32_t rt_nfuncs;

#endif
