/*
 * What each machine must supply: the syntax of marker arguments, the layout of struct pt_regs, and the calling
 * conventions of functions and system calls.
 *
 * The argument string of a marker note has one operand per argument, in the machine's own assembler
 * syntax, as GCC and clang print it: "-4@%r13d 8@112(%rsp)", "-4@w19 8@[sp, 12]".  The number before the @
 * is the size in bytes, negative for a signed integer, followed by f for a float.  Old headers wrote
 * no size; then it is the register's width, or 8 bytes for memory.  Format: SystemTap's
 * UserSpaceProbeImplementation, sections on x86-64 and aarch64.
 *
 * Parsing never fails as a whole: an operand that cannot be read when the probe fires (a vector register,
 * thread-local storage, unknown text) has a reason in `why`, and the others stay usable.
 */
#ifndef DTAP_ARCH_ARCH_H
#define DTAP_ARCH_ARCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum arch_reg_kind {
	ARCH_REG_INT,		/* in struct pt_regs */
	ARCH_REG_PC,		/* likewise; the program counter */
	ARCH_REG_ZERO,		/* reads as 0: xzr, wzr */
	ARCH_REG_VEC,		/* vector or floating point: not in struct pt_regs */
	ARCH_REG_SEG,		/* an x86 segment register */
};

struct arch_reg {
	const char *name;	/* without the % */
	enum arch_reg_kind kind;
	uint8_t width;		/* bytes */
	uint16_t off;		/* INT, PC: of its lowest byte in struct pt_regs (%ah is 1 byte after %al) */
};

enum arch_loc { ARCH_LOC_NONE, ARCH_LOC_CONST, ARCH_LOC_REG, ARCH_LOC_MEM };

/* How `sym` contributes to the operand's value. */
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
	const char *sym;		/* not NULL: the symbol to resolve; points into the caller's text */
	size_t sym_len;
	enum arch_sym sym_kind;
	const char *why;		/* not NULL: why it cannot be read in place; a static string */
};

/* A register by its name in D's uregs[] (DTrace guide, "User Process Tracing"). */
struct arch_ureg {
	const char *name;
	uint16_t off;
};

/* Offsets in struct pt_regs, in bytes (uapi asm/ptrace.h). */
struct arch_kept {
	uint16_t pc, sp, fp;
	bool links;			/* at a function's entry, the return address is in @link, not on the stack */
	uint16_t link;
	uint16_t mutex_size;		/* sizeof(pthread_mutex_t) in glibc */
	/* In a system call: its number, with its size in bytes, and its arguments; their names in BTF, or NULL. */
	uint16_t syscall, syscall_bytes, syscall_args[6];
	const char *syscall_field, *syscall_arg_fields[6];
	/* A word that is @mode_32 in system calls of 32-bit programs, which have other numbers; 0, NULL: no such word. */
	uint16_t mode;
	const char *mode_field;
	uint8_t mode_32;
	const struct arch_ureg *uregs;	/* the last one has no name */
	const struct arch_reg *others;	/* of struct pt_regs, what operands do not name; the last one has no name; or NULL */
};

struct arch {
	const char *name;
	uint16_t e_machine;
	struct arch_kept kept;
	const struct arch_reg *pc;
	/* A function's first ten integer arguments at its entry, and its result at its return, as operands
	 * (System V ABI, AMD64 supplement; AAPCS64). */
	const char *call_args, *call_result;
	/* A function's return address at its entry, and after it has set up its frame, as operands. */
	const char *return_addr, *framed_return_addr;
	/* The registers in the order of DWARF's numbers, as operands. */
	const char *dwarf_regs;
	/* The length in bytes of the instruction at @p, where @n bytes can be read; 0: unknown or truncated. */
	unsigned int (*insn_len)(const uint8_t *p, size_t n);
	/*
	 * Is the instruction at @p, of @len bytes by insn_len, at the address @addr, a direct jump, conditional or not?
	 * Then *to is its target.  A call is not a jump.
	 */
	bool (*jump)(const uint8_t *p, unsigned int len, uint64_t addr, uint64_t *to);
	/*
	 * Parse the operand of @len bytes at @s, without its size.  Sets all fields of the zeroed @op except size, sign
	 * and is_float.  NULL, or what is wrong.
	 */
	const char *(*parse)(const char *s, size_t len, struct arch_operand *op);
};

extern const struct arch arch_x86_64, arch_aarch64;

/* The machine of an ELF header's e_machine, or NULL. */
const struct arch *arch_find(uint16_t e_machine);

/* The machine that dtap was built for, or NULL if it is neither of these. */
const struct arch *arch_host(void);

/*
 * Parse the argument string @args into at most @max @ops.  Returns the number of operands, which may be more
 * than @max.  A NULL @arch gives every operand a `why`.  Symbols point into @args.
 */
unsigned int arch_operands(const struct arch *arch, const char *args, struct arch_operand *ops,
			   unsigned int max);

#endif
