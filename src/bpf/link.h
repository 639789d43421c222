/*
 * Linking: the runtime functions that a program calls, appended to it.
 */
#ifndef DTAP_BPF_LINK_H
#define DTAP_BPF_LINK_H

struct assembler;
struct ebpf_prog;
struct ebpf_unit;

/* Append what the calls in @a need, each function once, and make the calls reach it.  Sets @p's funcs. */
void link_runtime(struct assembler *a, const struct ebpf_unit *u, struct ebpf_prog *p);

#endif
