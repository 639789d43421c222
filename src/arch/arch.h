/*
 * What a machine must supply: today, how a marker's arguments are written and where registers are kept.
 *
 * The argument string of a marker note holds one operand an argument, in the machine's own assembler
 * syntax, as GCC and clang print it: "-4@%r13d 8@112(%rsp)", "-4@w19 8@[sp, 12]".  The number before the @
 * is the size in bytes, negative for a signed integer, with an f behind it for a float.  Old headers wrote
 * no size; the register's width is then taken, and 8 bytes for memory.  Format: SystemTap's
 * UserSpaceProbeImplementation, sections on x86-64 and aarch64.
 *
 * Parsing never fails as a whole: an operand that cannot be read when the probe fires (a vector register,
 * thread-local storage, text that nobody understands) says so in `why`, and the others stay usable.
 */
#ifndef DTAP_ARCH_ARCH_H
#define DTAP_ARCH_ARCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum arch_reg_kind {
	ARCH_REG_INT,		/* kept in struct pt_regs */
	ARCH_REG_PC,		/* likewise; names the program counter */
	ARCH_REG_ZERO,		/* reads as 0: xzr, wzr */
	ARCH_REG_VEC,		/* vector or floating point: not in struct pt_regs */
	ARCH_REG_SEG,		/* an x86 segment register */
};

struct arch_reg {
	const char *name;	/* without the % */
	enum arch_reg_kind kind;
	uint8_t width;		/* bytes */
	uint16_t off;		/* INT, PC: of its lowest byte in struct pt_regs (%ah is one above %al) */
};

enum arch_loc { ARCH_LOC_NONE, ARCH_LOC_CONST, ARCH_LOC_REG, ARCH_LOC_MEM };

/* How `sym` enters the operand's value. */
enum arch_sym {
	ARCH_SYM_ADDR,		/* sym's address is added */
	ARCH_SYM_PCREL,		/* likewise, and the base register is the program counter: symbol(%rip) */
	ARCH_SYM_LO12,		/* the low 12 bits of address + value: [x0, #:lo12:symbol] */
};

struct arch_operand {
	enum arch_loc loc;
	uint8_t size;			/* bytes: 1, 2, 4, 8 (16 only with a `why`) */
	bool sign, is_float;
	const struct arch_reg *reg;	/* REG; MEM: the base, or NULL */
	const struct arch_reg *index;	/* MEM, or NULL */
	uint8_t scale;			/* MEM with an index: 1, 2, 4, 8 */
	int64_t value;			/* CONST: the value; MEM: the displacement */
	const char *sym;		/* not NULL: a symbol still to be resolved, in the caller's text */
	size_t sym_len;
	enum arch_sym sym_kind;
	const char *why;		/* not NULL: why it cannot be read in place; a static string */
};

struct arch {
	const char *name;
	uint16_t e_machine;
	const struct arch_reg *pc;
	/* Where a function's first ten integer arguments are at its entry, and its result at its return, as operands:
	 * the machine's procedure call standard (System V ABI, AMD64 supplement; AAPCS64). */
	const char *call_args, *call_result;
	/* Where a function's return address is at its entry, and when it has set up its frame, as operands. */
	const char *return_addr, *framed_return_addr;
	/* The registers in the order of DWARF's numbers, as operands. */
	const char *dwarf_regs;
	/* The length in bytes of the instruction at @p, of which @n can be read; 0: none that is known. */
	unsigned int (*insn_len)(const uint8_t *p, size_t n);
	/*
	 * Parse the operand of @len bytes at @s, which stands behind the size.  Sets every field but size, sign
	 * and is_float of the zeroed @op.  NULL, or what is wrong.
	 */
	const char *(*parse)(const char *s, size_t len, struct arch_operand *op);
};

extern const struct arch arch_x86_64, arch_aarch64;

/* The machine of an ELF header's e_machine, or NULL. */
const struct arch *arch_find(uint16_t e_machine);

/* The machine that dtap was built for, or NULL when it is none of the above. */
const struct arch *arch_host(void);

/*
 * Parse the argument string @args into @ops, @max at most: how many operands there are, which may be more
 * than @max.  A NULL @arch gives every operand a `why`.  Symbols point into @args.
 */
unsigned int arch_operands(const struct arch *arch, const char *args, struct arch_operand *ops,
			   unsigned int max);

#endif
