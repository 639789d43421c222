/*
 * Marker operands of x86-64, in AT&T syntax as GCC and clang print them.
 *
 *	%r13d	%ah	%xmm0			a register
 *	$-5	$foo+8				a constant
 *	112(%rsp)	(%rax,%rbx,8)		memory
 *	16(,%rcx,8)	0x601040		memory without a base
 *	foo+4(%rip)	foo			memory at a symbol
 *	%fs:16	%fs:(%rax)			thread-local storage: parsed, but not readable
 */
#include <elf.h>

#include "arch/arch.h"
#include "arch/scan.h"
#include "arch/x86_64/len.h"

static const struct arch_reg regs[] = {
#define X86_REG(WORD, R8, R4, R2, R1)				\
	{ R8, ARCH_REG_INT, 8, (WORD) * 8 },			\
	{ R4, ARCH_REG_INT, 4, (WORD) * 8 },			\
	{ R2, ARCH_REG_INT, 2, (WORD) * 8 },			\
	{ R1, ARCH_REG_INT, 1, (WORD) * 8 },
#include "arch/x86_64/regs.def"
#undef X86_REG
	{ "ah", ARCH_REG_INT, 1, 10 * 8 + 1 },
	{ "bh", ARCH_REG_INT, 1, 5 * 8 + 1 },
	{ "ch", ARCH_REG_INT, 1, 11 * 8 + 1 },
	{ "dh", ARCH_REG_INT, 1, 12 * 8 + 1 },
	{ "cs", ARCH_REG_SEG, 2, 0 },
	{ "ds", ARCH_REG_SEG, 2, 0 },
	{ "es", ARCH_REG_SEG, 2, 0 },
	{ "fs", ARCH_REG_SEG, 2, 0 },
	{ "gs", ARCH_REG_SEG, 2, 0 },
	{ "ss", ARCH_REG_SEG, 2, 0 },
};

static const struct arch_reg rip = { "rip", ARCH_REG_PC, 8, 16 * 8 };

/* One row per kind of vector register is enough, because none can be read. */
static const struct arch_reg xmm = { "xmm", ARCH_REG_VEC, 16, 0 }, ymm = { "ymm", ARCH_REG_VEC, 32, 0 },
			     zmm = { "zmm", ARCH_REG_VEC, 64, 0 }, mmx = { "mm", ARCH_REG_VEC, 8, 0 },
			     x87 = { "st", ARCH_REG_VEC, 10, 0 };

/* vector := ("xmm" | "ymm" | "zmm" | "mm") digits | "st" ["(" digit ")"] */
static const struct arch_reg *parse_vector(struct scan *s)
{
	const struct arch_reg *r = &mmx;
	struct scan at = *s;
	int64_t n;

	if (scan_char(&at, 's') && scan_char(&at, 't')) {
		if (scan_char(&at, '(') && (!scan_int(&at, &n) || !scan_char(&at, ')')))
			return NULL;
		*s = at;
		return &x87;
	}
	at = *s;
	if (scan_char(&at, 'x'))
		r = &xmm;
	else if (scan_char(&at, 'y'))
		r = &ymm;
	else if (scan_char(&at, 'z'))
		r = &zmm;
	if (!scan_char(&at, 'm') || !scan_char(&at, 'm') || !scan_int(&at, &n) || n < 0 || n > 31)
		return NULL;
	*s = at;
	return r;
}

/* register := "%" name */
static const struct arch_reg *parse_reg(struct scan *s)
{
	const struct arch_reg *r;

	if (!scan_char(s, '%'))
		return NULL;
	r = scan_reg(s, &rip, 1);
	if (!r)
		r = scan_reg(s, regs, sizeof(regs) / sizeof(regs[0]));
	return r ? r : parse_vector(s);
}

static bool address_reg(const struct arch_reg *r)
{
	return r && (r->kind == ARCH_REG_INT || r->kind == ARCH_REG_PC);
}

/* base := "(" [register] ["," register ["," scale]] ")" */
static const char *parse_base(struct scan *s, struct arch_operand *op)
{
	int64_t scale = 1;

	if (s->p < s->end && *s->p == '%') {
		op->reg = parse_reg(s);
		if (!address_reg(op->reg))
			return "a base that is no integer register";
	}
	if (scan_char(s, ',')) {
		if (s->p < s->end && *s->p == '%') {
			op->index = parse_reg(s);
			if (!op->index || op->index->kind != ARCH_REG_INT)
				return "an index that is no integer register";
		}
		if (scan_char(s, ',') && (!scan_int(s, &scale) || (scale != 1 && scale != 2 && scale != 4 && scale != 8)))
			return "a scale that is not 1, 2, 4 or 8";
	}
	if (!scan_char(s, ')'))
		return "brackets that do not close";
	op->scale = op->index ? (uint8_t)scale : 0;
	/* 32-bit addressing wraps at 4 GiB; compilers use it only for x32, for which there is no CPython. */
	if ((op->reg && op->reg->width != 8) || (op->index && op->index->width != 8))
		op->why = "an address in narrow registers";
	return NULL;
}

/* memory := [sum] [base] */
static const char *parse_mem(struct scan *s, struct arch_operand *op)
{
	const char *bad = NULL;
	bool any = false;

	op->loc = ARCH_LOC_MEM;
	if (s->p < s->end && *s->p != '(') {
		if (!scan_sum(s, &op->value, &op->sym, &op->sym_len))
			return "an address that is not understood";
		any = true;
	}
	if (scan_char(s, '(')) {
		bad = parse_base(s, op);
		any = true;
	}
	if (bad)
		return bad;
	if (op->sym)
		op->sym_kind = op->reg && op->reg->kind == ARCH_REG_PC ? ARCH_SYM_PCREL : ARCH_SYM_ADDR;
	return any && scan_done(s) ? NULL : "an address that is not understood";
}

/* operand := "$" sum | register | [segment ":"] memory */
static const char *parse(const char *text, size_t len, struct arch_operand *op)
{
	struct scan s = { text, text + len };
	const char *bad;

	if (scan_char(&s, '$')) {
		op->loc = ARCH_LOC_CONST;
		if (!scan_sum(&s, &op->value, &op->sym, &op->sym_len) || !scan_done(&s))
			return "a constant that is not understood";
		return NULL;
	}
	if (s.p < s.end && *s.p == '%') {
		op->reg = parse_reg(&s);
		if (!op->reg)
			return "an unknown register";
		if (op->reg->kind != ARCH_REG_SEG || !scan_char(&s, ':')) {
			op->loc = ARCH_LOC_REG;
			return scan_done(&s) ? NULL : "a register with text behind it";
		}
		op->reg = NULL;
		bad = parse_mem(&s, op);
		op->why = "in thread-local storage";
		return bad;
	}
	return parse_mem(&s, op);
}

/* D's register names and their offsets in struct pt_regs; the last five names exist on every machine. */
static const struct arch_ureg uregs[] = {
	{ "R_R15", 0 }, { "R_R14", 8 }, { "R_R13", 16 }, { "R_R12", 24 },
	{ "R_RBP", 32 }, { "R_RBX", 40 }, { "R_R11", 48 }, { "R_R10", 56 },
	{ "R_R9", 64 }, { "R_R8", 72 }, { "R_RAX", 80 }, { "R_RCX", 88 },
	{ "R_RDX", 96 }, { "R_RSI", 104 }, { "R_RDI", 112 }, { "R_RIP", 128 },
	{ "R_CS", 136 }, { "R_RFL", 144 }, { "R_RSP", 152 }, { "R_SS", 160 },
	{ "R_PC", 128 }, { "R_SP", 152 }, { "R_PS", 144 }, { "R_R0", 80 },
	{ "R_R1", 96 },
	{ NULL, 0 }
};

/* What struct pt_regs has besides, by SystemTap's names (tapset reference, register()). */
static const struct arch_reg others[] = {
	{ "orig_rax", ARCH_REG_INT, 8, 120 }, { "xcs", ARCH_REG_INT, 8, 136 }, { "eflags", ARCH_REG_INT, 8, 144 },
	{ "xss", ARCH_REG_INT, 8, 160 }, { "orig_eax", ARCH_REG_INT, 4, 120 }, { "eip", ARCH_REG_INT, 4, 128 },
	{ "orig_ax", ARCH_REG_INT, 2, 120 }, { "ip", ARCH_REG_INT, 2, 128 }, { "cs", ARCH_REG_INT, 2, 136 },
	{ "flags", ARCH_REG_INT, 2, 144 }, { "ss", ARCH_REG_INT, 2, 160 }, { NULL, ARCH_REG_INT, 0, 0 },
};

const struct arch arch_x86_64 = {
	.name = "x86_64",
	.e_machine = EM_X86_64,
	.kept = {
		.pc = 16 * 8, .sp = 19 * 8, .fp = 4 * 8, .mutex_size = 40,
		.syscall = 15 * 8, .syscall_bytes = 8,
		.syscall_args = { 14 * 8, 13 * 8, 12 * 8, 7 * 8, 9 * 8, 8 * 8 },	/* rdi rsi rdx r10 r8 r9 */
		.syscall_field = "orig_ax", .syscall_arg_fields = { "di", "si", "dx", "r10", "r8", "r9" },
		.mode = 17 * 8, .mode_field = "cs", .mode_32 = 0x23,
		.uregs = uregs, .others = others,
	},
	.pc = &rip,
	.call_args = "-8@%rdi -8@%rsi -8@%rdx -8@%rcx -8@%r8 -8@%r9 -8@8(%rsp) -8@16(%rsp) -8@24(%rsp) -8@32(%rsp)",
	.call_result = "-8@$-1 -8@%rax",
	.return_addr = "8@(%rsp)",
	.framed_return_addr = "8@8(%rbp)",
	.dwarf_regs = "8@%rax 8@%rdx 8@%rcx 8@%rbx 8@%rsi 8@%rdi 8@%rbp 8@%rsp 8@%r8 8@%r9 8@%r10 8@%r11 8@%r12 8@%r13"
		      " 8@%r14 8@%r15",
	.insn_len = x86_64_insn_len,
	.jump = x86_64_jump,
	.parse = parse,
};
