/*
 * Instructions as text, in the form that the kernel's verifier uses in its log, so that the two can be compared.
 */
#include "bpf/ebpf.h"

#include <stdio.h>

#include "base/strbuf.h"
#include "bpf/asm.h"

static const char *size_text(unsigned int code)
{
	switch (BPF_SIZE(code)) {
	case BPF_B:
		return "u8";
	case BPF_H:
		return "u16";
	case BPF_W:
		return "u32";
	default:
		return "u64";
	}
}

static void alu(struct strbuf *out, const struct bpf_insn *i)
{
	static const char *const ops[16] = {
		[BPF_ADD >> 4] = "+=", [BPF_SUB >> 4] = "-=",  [BPF_MUL >> 4] = "*=",	[BPF_DIV >> 4] = "/=",
		[BPF_OR >> 4] = "|=",  [BPF_AND >> 4] = "&=",  [BPF_LSH >> 4] = "<<=",	[BPF_RSH >> 4] = ">>=",
		[BPF_MOD >> 4] = "%=", [BPF_XOR >> 4] = "^=",  [BPF_MOV >> 4] = "=",	[BPF_ARSH >> 4] = "s>>=",
	};
	char r = BPF_CLASS(i->code) == BPF_ALU ? 'w' : 'r';
	const char *op = ops[BPF_OP(i->code) >> 4];

	if (BPF_OP(i->code) == BPF_NEG)
		strbuf_printf(out, "%c%u = -%c%u", r, i->dst_reg, r, i->dst_reg);
	else if (!op)
		strbuf_printf(out, "?? 0x%02x", i->code);
	else if (BPF_SRC(i->code) == BPF_X)
		strbuf_printf(out, "%c%u %s %c%u", r, i->dst_reg, op, r, i->src_reg);
	else
		strbuf_printf(out, "%c%u %s %d", r, i->dst_reg, op, i->imm);
}

static void jump(struct strbuf *out, const struct bpf_insn *i, uint32_t at)
{
	static const char *const ops[16] = {
		[BPF_JEQ >> 4] = "==",	 [BPF_JGT >> 4] = ">",	 [BPF_JGE >> 4] = ">=",	 [BPF_JSET >> 4] = "&",
		[BPF_JNE >> 4] = "!=",	 [BPF_JSGT >> 4] = "s>", [BPF_JSGE >> 4] = "s>=", [BPF_JLT >> 4] = "<",
		[BPF_JLE >> 4] = "<=",	 [BPF_JSLT >> 4] = "s<", [BPF_JSLE >> 4] = "s<=",
	};
	char r = BPF_CLASS(i->code) == BPF_JMP32 ? 'w' : 'r';
	const char *op = ops[BPF_OP(i->code) >> 4];
	long long to = (long long)at + 1 + i->off;

	if (BPF_OP(i->code) == BPF_EXIT)
		strbuf_puts(out, "exit");
	else if (BPF_OP(i->code) == BPF_CALL && i->src_reg == BPF_PSEUDO_CALL)
		strbuf_printf(out, "call pc%+d", i->imm);
	else if (BPF_OP(i->code) == BPF_CALL)
		strbuf_printf(out, "call helper#%d", i->imm);
	else if (BPF_OP(i->code) == BPF_JA)
		strbuf_printf(out, "goto %lld", r == 'w' ? (long long)at + 1 + i->imm : to);
	else if (i->code == (BPF_JMP | ASM_JCOND))
		strbuf_printf(out, "%s_goto %lld", i->imm == ASM_LAST ? "last" : "may", to);
	else if (!op)
		strbuf_printf(out, "?? 0x%02x", i->code);
	else if (BPF_SRC(i->code) == BPF_X)
		strbuf_printf(out, "if %c%u %s %c%u goto %lld", r, i->dst_reg, op, r, i->src_reg, to);
	else
		strbuf_printf(out, "if %c%u %s %d goto %lld", r, i->dst_reg, op, i->imm, to);
}

static void atomic(struct strbuf *out, const struct bpf_insn *i)
{
	const char *size = size_text(i->code);

	if (i->imm == BPF_XCHG)
		strbuf_printf(out, "r%u = atomic_xchg((%s *)(r%u %+d), r%u)", i->src_reg, size, i->dst_reg, i->off,
			      i->src_reg);
	else if (i->imm == BPF_CMPXCHG)
		strbuf_printf(out, "r0 = atomic_cmpxchg((%s *)(r%u %+d), r0, r%u)", size, i->dst_reg, i->off,
			      i->src_reg);
	else if (i->imm & BPF_FETCH)
		strbuf_printf(out, "r%u = atomic_fetch_op_%02x((%s *)(r%u %+d), r%u)", i->src_reg,
			      i->imm & ~BPF_FETCH, size, i->dst_reg, i->off, i->src_reg);
	else if (i->imm == BPF_ADD)
		strbuf_printf(out, "lock *(%s *)(r%u %+d) += r%u", size, i->dst_reg, i->off, i->src_reg);
	else
		strbuf_printf(out, "lock *(%s *)(r%u %+d) op_%02x r%u", size, i->dst_reg, i->off, i->imm, i->src_reg);
}

/* The number of the map that the instruction at @at refers to, or -1. */
static int map_of(const struct ebpf_prog *p, uint32_t at)
{
	uint32_t low = 0, high = p->nrelocs;

	while (low < high) {
		uint32_t mid = low + (high - low) / 2;

		if (p->relocs[mid].insn == at)
			return (int)p->relocs[mid].map;
		if (p->relocs[mid].insn < at)
			low = mid + 1;
		else
			high = mid;
	}
	return -1;
}

static void load_imm64(struct strbuf *out, const struct ebpf_prog *p, uint32_t at)
{
	const struct bpf_insn *i = &p->insns[at];
	uint32_t high = at + 1 < p->ninsns ? (uint32_t)p->insns[at + 1].imm : 0;

	if (i->src_reg == BPF_PSEUDO_MAP_FD)
		strbuf_printf(out, "r%u = map[%d]", i->dst_reg, map_of(p, at));
	else if (i->src_reg == BPF_PSEUDO_MAP_VALUE)
		strbuf_printf(out, "r%u = map[%d] + %u", i->dst_reg, map_of(p, at), high);
	else if (i->src_reg == BPF_PSEUDO_FUNC)
		strbuf_printf(out, "r%u = code pc%+d", i->dst_reg, i->imm);
	else
		strbuf_printf(out, "r%u = 0x%llx", i->dst_reg,
			      (unsigned long long)high << 32 | (uint32_t)i->imm);
}

static void insn_text(struct strbuf *out, const struct ebpf_prog *p, uint32_t at)
{
	const struct bpf_insn *i = &p->insns[at];

	switch (BPF_CLASS(i->code)) {
	case BPF_ALU:
	case BPF_ALU64:
		alu(out, i);
		break;
	case BPF_JMP:
	case BPF_JMP32:
		jump(out, i, at);
		break;
	case BPF_LDX:
		strbuf_printf(out, "r%u = *(%s *)(r%u %+d)", i->dst_reg, size_text(i->code), i->src_reg, i->off);
		break;
	case BPF_ST:
		strbuf_printf(out, "*(%s *)(r%u %+d) = %d", size_text(i->code), i->dst_reg, i->off, i->imm);
		break;
	case BPF_STX:
		if (BPF_MODE(i->code) == BPF_ATOMIC)
			atomic(out, i);
		else
			strbuf_printf(out, "*(%s *)(r%u %+d) = r%u", size_text(i->code), i->dst_reg, i->off,
				      i->src_reg);
		break;
	default:
		load_imm64(out, p, at);
		break;
	}
}

void ebpf_disasm(const struct ebpf_prog *p, struct strbuf *out)
{
	const struct ebpf_line *line = NULL;

	for (uint32_t at = 0; at < p->ninsns; at++) {
		const struct ebpf_line *here = ebpf_line_find(p, at);

		if (here && here != line && here->pos.line)
			strbuf_printf(out, "; clause %u, line %u\n", here->clause, here->pos.line);
		line = here;
		strbuf_printf(out, "%4u: ", at);
		insn_text(out, p, at);
		strbuf_putc(out, '\n');
		if (p->insns[at].code == (BPF_LD | BPF_IMM | BPF_DW))
			at++;
	}
}
