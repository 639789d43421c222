/*
 * The length of an instruction, and the target of a jump.
 */
#ifndef DTAP_ARCH_X86_64_LEN_H
#define DTAP_ARCH_X86_64_LEN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* See struct arch's insn_len. */
unsigned int x86_64_insn_len(const uint8_t *p, size_t n);

/* See struct arch's jump. */
bool x86_64_jump(const uint8_t *p, unsigned int len, uint64_t addr, uint64_t *to);

#endif
