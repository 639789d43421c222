/*
 * Marker operands of aarch64, as GCC and clang print them, with or without the # before a number.
 *
 *	x0	w13	sp	d0		a register
 *	-5	#5	foo			a constant, a symbol's address
 *	[x1]	[sp, 12]	[x29, #-8]	memory
 *	[x0, x1]	[x0,x1,lsl 3]		memory with an index
 *	[x0, w1, sxtw 2]			parsed, but not readable: the index is half a register
 *	[x0, #:lo12:foo+8]			memory at a symbol; x0 holds its page
 */
#include <elf.h>
#include <string.h>

#include "arch/arch.h"
#include "arch/scan.h"

#define PAIR(N)							\
	{ "x" #N, ARCH_REG_INT, 8, (N) * 8 },			\
	{ "w" #N, ARCH_REG_INT, 4, (N) * 8 }

/* struct user_pt_regs: x0 to x30, sp, pc (arch/arm64/include/uapi/asm/ptrace.h). */
static const struct arch_reg regs[] = {
	PAIR(0), PAIR(1), PAIR(2), PAIR(3), PAIR(4), PAIR(5), PAIR(6), PAIR(7),
	PAIR(8), PAIR(9), PAIR(10), PAIR(11), PAIR(12), PAIR(13), PAIR(14), PAIR(15),
	PAIR(16), PAIR(17), PAIR(18), PAIR(19), PAIR(20), PAIR(21), PAIR(22), PAIR(23),
	PAIR(24), PAIR(25), PAIR(26), PAIR(27), PAIR(28), PAIR(29), PAIR(30),
	{ "fp",  ARCH_REG_INT,  8, 29 * 8 },
	{ "lr",  ARCH_REG_INT,  8, 30 * 8 },
	{ "sp",  ARCH_REG_INT,  8, 31 * 8 },
	{ "wsp", ARCH_REG_INT,  4, 31 * 8 },
	{ "xzr", ARCH_REG_ZERO, 8, 0 },
	{ "wzr", ARCH_REG_ZERO, 4, 0 },
};

static const struct arch_reg pc = { "pc", ARCH_REG_PC, 8, 32 * 8 };

/* By the letter before the number.  One row per letter is enough, because none can be read. */
static const struct arch_reg vectors[] = {
	{ "b", ARCH_REG_VEC, 1, 0 }, { "h", ARCH_REG_VEC, 2, 0 },  { "s", ARCH_REG_VEC, 4, 0 },
	{ "d", ARCH_REG_VEC, 8, 0 }, { "q", ARCH_REG_VEC, 16, 0 }, { "v", ARCH_REG_VEC, 16, 0 },
};

/* vector := ("b" | "h" | "s" | "d" | "q" | "v") digits */
static const struct arch_reg *parse_vector(struct scan *s)
{
	struct scan at;
	int64_t n;

	for (size_t i = 0; i < sizeof(vectors) / sizeof(vectors[0]); i++) {
		at = *s;
		if (scan_char(&at, vectors[i].name[0]) && scan_int(&at, &n) && n >= 0 && n <= 31 && scan_done(&at)) {
			*s = at;
			return &vectors[i];
		}
	}
	return NULL;
}

static const struct arch_reg *parse_reg(struct scan *s)
{
	return scan_reg(s, regs, sizeof(regs) / sizeof(regs[0]));
}

/* Skip @text if it comes next. */
static bool word(struct scan *s, const char *text)
{
	struct scan at = *s;

	while (*text)
		if (!scan_char(&at, *text++))
			return false;
	*s = at;
	return true;
}

/* extend := "," ("lsl" | "sxtx" | "uxtw" | "sxtw") [["#"] number] */
static const char *parse_extend(struct scan *s, struct arch_operand *op)
{
	int64_t shift = 0;

	if (word(s, "uxtw") || word(s, "sxtw"))
		op->why = "an index that is half a register";
	else if (!word(s, "lsl") && !word(s, "sxtx"))
		return "an index extension that is not understood";
	scan_blanks(s);
	scan_char(s, '#');
	if (s->p < s->end && *s->p != ']' && !scan_int(s, &shift))
		return "an index shift that is not understood";
	if (shift < 0 || shift > 3)
		return "an index shift that is not 0 to 3";
	op->scale = (uint8_t)(1 << shift);
	return NULL;
}

/* index := ["#"] (sum | ":lo12:" sum) | register [extend] */
static const char *parse_index(struct scan *s, struct arch_operand *op)
{
	op->index = parse_reg(s);
	if (op->index) {
		op->scale = 1;
		if (op->index->kind == ARCH_REG_ZERO)
			op->index = NULL;
		else if (op->index->width != 8)
			op->why = "an index that is half a register";
		scan_blanks(s);
		if (!scan_char(s, ','))
			return NULL;
		scan_blanks(s);
		return parse_extend(s, op);
	}
	scan_char(s, '#');
	op->sym_kind = word(s, ":lo12:") ? ARCH_SYM_LO12 : ARCH_SYM_ADDR;
	if (!scan_sum(s, &op->value, &op->sym, &op->sym_len))
		return "an offset that is not understood";
	return NULL;
}

/* memory := "[" register ["," index] "]" */
static const char *parse_mem(struct scan *s, struct arch_operand *op)
{
	const char *bad = NULL;

	op->loc = ARCH_LOC_MEM;
	scan_blanks(s);
	op->reg = parse_reg(s);
	if (!op->reg || op->reg->kind != ARCH_REG_INT || op->reg->width != 8)
		return "a base that is no 64-bit register";
	scan_blanks(s);
	if (scan_char(s, ',')) {
		scan_blanks(s);
		bad = parse_index(s, op);
		scan_blanks(s);
	}
	if (!bad && (!scan_char(s, ']') || !scan_done(s)))
		bad = "an address that is not understood";
	return bad;
}

/* operand := memory | register | vector | ["#"] sum */
static const char *parse(const char *text, size_t len, struct arch_operand *op)
{
	struct scan s = { text, text + len };

	if (scan_char(&s, '['))
		return parse_mem(&s, op);
	op->reg = parse_reg(&s);
	if (!op->reg)
		op->reg = parse_vector(&s);
	if (op->reg && scan_done(&s)) {
		op->loc = op->reg->kind == ARCH_REG_ZERO ? ARCH_LOC_CONST : ARCH_LOC_REG;
		if (op->loc == ARCH_LOC_CONST)
			op->reg = NULL;
		return NULL;
	}
	op->reg = NULL;
	op->loc = ARCH_LOC_CONST;
	scan_char(&s, '#');
	if (!scan_sum(&s, &op->value, &op->sym, &op->sym_len) || !scan_done(&s))
		return "an operand that is not understood";
	return NULL;
}

static unsigned int insn_len(const uint8_t *p, size_t n)
{
	(void)p;
	return n < 4 ? 0 : 4;
}

/* B; B.cond and BC.cond, CBZ and CBNZ; TBZ and TBNZ (Arm ARM, C4.1, "Branches"). */
static bool jump(const uint8_t *p, unsigned int len, uint64_t addr, uint64_t *to)
{
	uint32_t insn;
	int32_t rel;

	if (len != sizeof(insn))
		return false;
	memcpy(&insn, p, sizeof(insn));
	if (insn >> 26 == 0x05)
		rel = (int32_t)(insn << 6) >> 6;
	else if (insn >> 24 == 0x54 || (insn >> 25 & 0x3f) == 0x1a)
		rel = (int32_t)(insn << 8) >> 13;
	else if ((insn >> 25 & 0x3f) == 0x1b)
		rel = (int32_t)(insn << 13) >> 18;
	else
		return false;
	*to = addr + (uint64_t)((int64_t)rel * 4);
	return true;
}

/* D's register names that exist on every machine. */
static const struct arch_ureg uregs[] = {
	{ "R_PC", 32 * 8 }, { "R_SP", 31 * 8 }, { "R_PS", 33 * 8 }, { "R_R0", 0 }, { "R_R1", 8 },
	{ NULL, 0 }
};

const struct arch arch_aarch64 = {
	.name = "aarch64",
	.e_machine = EM_AARCH64,
	.kept = {
		.pc = 32 * 8, .sp = 31 * 8, .fp = 29 * 8, .links = true, .link = 30 * 8, .mutex_size = 48,
		.syscall = 35 * 8, .syscall_bytes = 4,
		.syscall_args = { 34 * 8, 8, 16, 24, 32, 40 },	/* orig_x0 x1 ... x5 */
		.syscall_field = "syscallno", .syscall_arg_fields = { "orig_x0" },	/* others: in an array */
		.uregs = uregs,
	},
	.pc = &pc,
	.call_args = "-8@x0 -8@x1 -8@x2 -8@x3 -8@x4 -8@x5 -8@x6 -8@x7 -8@[sp] -8@[sp, 8]",
	.call_result = "-8@-1 -8@x0",
	.return_addr = "8@x30",
	.framed_return_addr = "8@[x29, 8]",
	.dwarf_regs = "8@x0 8@x1 8@x2 8@x3 8@x4 8@x5 8@x6 8@x7 8@x8 8@x9 8@x10 8@x11 8@x12 8@x13 8@x14 8@x15"
		      " 8@x16 8@x17 8@x18 8@x19 8@x20 8@x21 8@x22 8@x23 8@x24 8@x25 8@x26 8@x27 8@x28 8@x29 8@x30 8@sp",
	.insn_len = insn_len,
	.jump = jump,
	.parse = parse,
};
