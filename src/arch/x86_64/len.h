/*
 * How long an instruction is.
 */
#ifndef DTAP_ARCH_X86_64_LEN_H
#define DTAP_ARCH_X86_64_LEN_H

#include <stddef.h>
#include <stdint.h>

/* See struct arch's insn_len. */
unsigned int x86_64_insn_len(const uint8_t *p, size_t n);

#endif
