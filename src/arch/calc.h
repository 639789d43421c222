/*
 * Where a variable is, or what it is, as a computation on a stack: the operations of DWARF's location expressions that
 * optimizing compilers use (DWARF 5, 2.5.1), with registers or, in a language, arguments of the probe.
 */
#ifndef DTAP_ARCH_CALC_H
#define DTAP_ARCH_CALC_H

#include <stdint.h>

enum calc_kind {
	CALC_CONST,		/* push @n */
	CALC_REG,		/* push register (argument) @reg plus @n */
	CALC_ADDR,		/* push the address in the process of the file's address @n */
	CALC_PICK,		/* push a copy of the value @n below the top */
	CALC_DROP, CALC_SWAP,
	CALC_ROT,		/* the top becomes the third */
	CALC_LOAD,		/* an address: becomes the @n bytes there */
	CALC_NEG, CALC_NOT,	/* one value becomes another; the others make one of the top and what is below */
	CALC_ADD, CALC_SUB, CALC_MUL, CALC_AND, CALC_OR, CALC_XOR, CALC_SHL, CALC_SHR, CALC_SAR,
	CALC_EQ, CALC_NE, CALC_LT, CALC_LE,
};

enum { CALC_MAX_STEPS = 24, CALC_MAX_STACK = 8 };

struct calc_step {
	enum calc_kind kind;
	unsigned int reg;
	int64_t n;
};

#endif
