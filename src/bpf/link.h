/*
 * Linking: the runtime functions that a program calls, put behind it.
 */
#ifndef DTAP_BPF_LINK_H
#define DTAP_BPF_LINK_H

struct assembler;

/* Append what the calls in @a need, each function once, and make the calls reach it. */
void link_runtime(struct assembler *a);

#endif
