#include "asm.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_LABELS = 128, NAME = 32 };

struct label {
	char name[NAME];
	int at;
};

/* An instruction that waits for a label: its offset, or its immediate. */
struct fix {
	char name[NAME];
	int insn;
	bool imm;
};

struct reader {
	struct bpf_insn *insns;
	int n, max;
	struct label labels[MAX_LABELS];
	struct fix fixes[MAX_LABELS];
	int nlabels, nfixes;
};

static const struct {
	const char *text;
	uint8_t op, off;
} alu_ops[] = {
	{ "+=", BPF_ADD, 0 }, { "-=", BPF_SUB, 0 }, { "*=", BPF_MUL, 0 }, { "/=", BPF_DIV, 0 },
	{ "s/=", BPF_DIV, 1 }, { "%=", BPF_MOD, 0 }, { "s%=", BPF_MOD, 1 }, { "|=", BPF_OR, 0 },
	{ "&=", BPF_AND, 0 }, { "^=", BPF_XOR, 0 }, { "<<=", BPF_LSH, 0 }, { ">>=", BPF_RSH, 0 },
	{ "s>>=", BPF_ARSH, 0 }, { "=", BPF_MOV, 0 },
}, jump_ops[] = {
	{ "==", BPF_JEQ, 0 }, { "!=", BPF_JNE, 0 }, { ">", BPF_JGT, 0 }, { ">=", BPF_JGE, 0 },
	{ "<", BPF_JLT, 0 }, { "<=", BPF_JLE, 0 }, { "s>", BPF_JSGT, 0 }, { "s>=", BPF_JSGE, 0 },
	{ "s<", BPF_JSLT, 0 }, { "s<=", BPF_JSLE, 0 }, { "&", BPF_JSET, 0 },
}, atomic_ops[] = {
	{ "add", BPF_ADD, 0 }, { "or", BPF_OR, 0 }, { "and", BPF_AND, 0 }, { "xor", BPF_XOR, 0 },
};

static bool put(struct reader *r, int code, int dst, int src, int off, int64_t imm)
{
	if (r->n == r->max)
		return false;
	r->insns[r->n++] = (struct bpf_insn){ .code = (uint8_t)code, .dst_reg = (uint8_t)dst & 15,
					      .src_reg = (uint8_t)src & 15, .off = (int16_t)off,
					      .imm = (int32_t)imm };
	return true;
}

static bool put_imm64(struct reader *r, int dst, int src, uint64_t v)
{
	return put(r, BPF_LD | BPF_IMM | BPF_DW, dst, src, 0, (int64_t)v) &&
	       put(r, 0, 0, 0, 0, (int64_t)(v >> 32));
}

static bool to_label(struct reader *r, const char *name, bool imm)
{
	struct fix *f = &r->fixes[r->nfixes];

	if (r->nfixes == MAX_LABELS)
		return false;
	r->nfixes++;
	snprintf(f->name, sizeof(f->name), "%s", name);
	f->insn = r->n;
	f->imm = imm;
	return true;
}

static int size_of(char sign, int bits)
{
	int mode = sign == 's' ? 0x80 : BPF_MEM;

	return mode | (bits == 8 ? BPF_B : bits == 16 ? BPF_H : bits == 32 ? BPF_W : BPF_DW);
}

/* Everything of the form "*(u32 *)(r1 + 8)" behind its start: the rest of the line is at *rest. */
static bool place(const char *s, int *size, int *reg, int *off, const char **rest)
{
	char sign, plus;
	int bits, n = 0;

	if (sscanf(s, "(%c%d *)(r%d %c %d)%n", &sign, &bits, reg, &plus, off, &n) != 5 || !n)
		return false;
	*size = size_of(sign, bits);
	if (plus == '-')
		*off = -*off;
	*rest = s + n;
	return true;
}

static bool store(struct reader *r, const char *s)
{
	int size, reg, off, src, n = 0;
	long long imm;
	const char *rest;

	if (!place(s + 1, &size, &reg, &off, &rest))
		return false;
	if (sscanf(rest, " = r%d%n", &src, &n) == 1 && !rest[n])
		return put(r, BPF_STX | size, reg, src, off, 0);
	if (sscanf(rest, " = %lli%n", &imm, &n) == 1 && !rest[n])
		return put(r, BPF_ST | size, reg, 0, off, imm);
	return false;
}

static bool lock(struct reader *r, const char *s)
{
	int size, reg, off, src;
	char op[4];
	const char *rest;

	if (!place(s + 1, &size, &reg, &off, &rest) || sscanf(rest, " %3s r%d", op, &src) != 2)
		return false;
	for (size_t k = 0; k < sizeof(alu_ops) / sizeof(*alu_ops); k++) {
		if (!strcmp(alu_ops[k].text, op))
			return put(r, BPF_STX | BPF_ATOMIC | BPF_SIZE(size), reg, src, off, alu_ops[k].op);
	}
	return false;
}

/* "atomic_fetch_add(...)" and its like; @s stands behind "atomic_". */
static bool atomic(struct reader *r, int dst, const char *s)
{
	const char *open = strchr(s, '('), *rest;
	int size, reg, off, src, imm = -1;

	if (!open || !place(open + 1, &size, &reg, &off, &rest))
		return false;
	if (!strncmp(s, "xchg", 4)) {
		imm = BPF_XCHG;
	} else if (!strncmp(s, "cmpxchg", 7)) {
		imm = BPF_CMPXCHG;
		rest += strlen(", r0");
	} else {
		for (size_t k = 0; k < sizeof(atomic_ops) / sizeof(*atomic_ops); k++) {
			if (!strncmp(s + strlen("fetch_"), atomic_ops[k].text, strlen(atomic_ops[k].text)))
				imm = atomic_ops[k].op | BPF_FETCH;
		}
	}
	if (imm < 0 || sscanf(rest, ", r%d)", &src) != 1 || (imm != BPF_CMPXCHG && src != dst))
		return false;
	return put(r, BPF_STX | BPF_ATOMIC | BPF_SIZE(size), reg, src, off, imm);
}

/* "r1 = ..." where the right side is not a register or a number; @s is that side. */
static bool special(struct reader *r, char kind, int dst, const char *s)
{
	int class = kind == 'w' ? BPF_ALU : BPF_ALU64;
	int size, reg, off, bits, n = 0;
	unsigned long long v;
	unsigned int map, at;
	char name[NAME];
	const char *rest;

	if (*s == '*' && place(s + 1, &size, &reg, &off, &rest))
		return put(r, BPF_LDX | size, dst, reg, off, 0);
	if (!strncmp(s, "atomic_", 7))
		return atomic(r, dst, s + 7);
	if (sscanf(s, "-%*1[rw]%d%n", &reg, &n) == 1 && !s[n])
		return put(r, class | BPF_NEG, dst, 0, 0, 0);
	if (sscanf(s, "(s%d)%*1[rw]%d", &bits, &reg) == 2)
		return put(r, class | BPF_MOV | BPF_X, dst, reg, bits, 0);
	if (sscanf(s, "be%d", &bits) == 1)
		return put(r, BPF_ALU | BPF_END | BPF_TO_BE, dst, 0, 0, bits);
	if (sscanf(s, "le%d", &bits) == 1)
		return put(r, BPF_ALU | BPF_END | BPF_TO_LE, dst, 0, 0, bits);
	if (sscanf(s, "bswap%d", &bits) == 1)
		return put(r, BPF_ALU64 | BPF_END, dst, 0, 0, bits);
	if (sscanf(s, "map[%u] + %u", &map, &at) == 2)
		return put_imm64(r, dst, BPF_PSEUDO_MAP_VALUE, (uint64_t)at << 32 | map);
	if (sscanf(s, "map[%u]", &map) == 1)
		return put_imm64(r, dst, BPF_PSEUDO_MAP_FD, map);
	if (sscanf(s, "code %31s", name) == 1)
		return to_label(r, name, true) && put_imm64(r, dst, 4, 0);
	if (sscanf(s, "%lli ll%n", (long long *)&v, &n) == 1 && n && !s[n]) {
		v = *s == '-' ? (unsigned long long)strtoll(s, NULL, 0) : strtoull(s, NULL, 0);
		return put_imm64(r, dst, 0, v);
	}
	return false;
}

static bool alu(struct reader *r, const char *s)
{
	char kind, op[5];
	int dst, src, n = 0, end;
	long long imm;

	if (sscanf(s, "%c%d %4s %n", &kind, &dst, op, &n) != 3 || !n)
		return false;
	s += n;
	for (size_t k = 0; k < sizeof(alu_ops) / sizeof(*alu_ops); k++) {
		int code = (kind == 'w' ? BPF_ALU : BPF_ALU64) | alu_ops[k].op;

		if (strcmp(op, alu_ops[k].text))
			continue;
		end = 0;
		if (sscanf(s, "%*1[rw]%d%n", &src, &end) == 1 && !s[end])
			return put(r, code | BPF_X, dst, src, alu_ops[k].off, 0);
		end = 0;
		if (sscanf(s, "%lli%n", &imm, &end) == 1 && end && !s[end])
			return put(r, code, dst, 0, alu_ops[k].off, imm);
		return alu_ops[k].op == BPF_MOV && special(r, kind, dst, s);
	}
	return false;
}

static bool branch(struct reader *r, const char *s)
{
	char kind, op[4], name[NAME];
	int dst, src, n = 0;
	long long imm;

	if (sscanf(s, "if %c%d %3s %n", &kind, &dst, op, &n) != 3 || !n)
		return false;
	s += n;
	for (size_t k = 0; k < sizeof(jump_ops) / sizeof(*jump_ops); k++) {
		int code = (kind == 'w' ? BPF_JMP32 : BPF_JMP) | jump_ops[k].op;

		if (strcmp(op, jump_ops[k].text))
			continue;
		if (sscanf(s, "%*1[rw]%d goto %31s", &src, name) == 2)
			return to_label(r, name, false) && put(r, code | BPF_X, dst, src, 0, 0);
		if (sscanf(s, "%lli goto %31s", &imm, name) == 2)
			return to_label(r, name, false) && put(r, code, dst, 0, 0, imm);
	}
	return false;
}

static bool line(struct reader *r, const char *s)
{
	char name[NAME];
	int v[5], n = 0;

	if (!strcmp(s, "exit"))
		return put(r, BPF_JMP | BPF_EXIT, 0, 0, 0, 0);
	if (sscanf(s, "raw %i %i %i %i %i", &v[0], &v[1], &v[2], &v[3], &v[4]) == 5)
		return put(r, v[0], v[1], v[2], v[3], v[4]);
	if (sscanf(s, "call %d%n", &v[0], &n) == 1 && !s[n])
		return put(r, BPF_JMP | BPF_CALL, 0, 0, 0, v[0]);
	if (sscanf(s, "call %31s", name) == 1)
		return to_label(r, name, true) && put(r, BPF_JMP | BPF_CALL, 0, BPF_PSEUDO_CALL, 0, 0);
	if (sscanf(s, "gotol %31s", name) == 1)
		return to_label(r, name, true) && put(r, BPF_JMP32 | BPF_JA, 0, 0, 0, 0);
	if (sscanf(s, "may_goto %31s", name) == 1)
		return to_label(r, name, false) && put(r, BPF_JMP | 0xe0, 0, 0, 0, 0);
	if (sscanf(s, "last_goto %31s", name) == 1)
		return to_label(r, name, false) && put(r, BPF_JMP | 0xe0, 0, 0, 0, 1);
	if (sscanf(s, "goto %31s", name) == 1)
		return to_label(r, name, false) && put(r, BPF_JMP | BPF_JA, 0, 0, 0, 0);
	if (!strncmp(s, "if ", 3))
		return branch(r, s);
	if (!strncmp(s, "lock *", 6))
		return lock(r, s + 5);
	if (*s == '*')
		return store(r, s);
	if (s[strlen(s) - 1] == ':' && r->nlabels < MAX_LABELS) {
		struct label *l = &r->labels[r->nlabels++];

		snprintf(l->name, sizeof(l->name), "%.*s", (int)strlen(s) - 1, s);
		l->at = r->n;
		return true;
	}
	return (*s == 'r' || *s == 'w') && alu(r, s);
}

static const struct label *find(const struct reader *r, const char *name)
{
	for (int k = 0; k < r->nlabels; k++) {
		if (!strcmp(r->labels[k].name, name))
			return &r->labels[k];
	}
	return NULL;
}

int asm_read(const char *text, struct bpf_insn *insns, int max, char err[200])
{
	struct reader r = { .insns = insns, .max = max };

	while (*text) {
		size_t len = strcspn(text, "\n"), end = strcspn(text, ";\n");
		char one[128];

		while (end && strchr(" \t", text[end - 1]))
			end--;
		snprintf(one, sizeof(one), "%.*s", (int)end, text);
		if (one[strspn(one, " \t")] && !line(&r, one + strspn(one, " \t"))) {
			snprintf(err, 200, "cannot read: %s", one);
			return -1;
		}
		text += len + !!text[len];
	}
	for (int k = 0; k < r.nfixes; k++) {
		const struct fix *f = &r.fixes[k];
		const struct label *l = find(&r, f->name);

		if (!l) {
			snprintf(err, 200, "no label %s", f->name);
			return -1;
		}
		if (f->imm)
			insns[f->insn].imm = l->at - f->insn - 1;
		else
			insns[f->insn].off = (int16_t)(l->at - f->insn - 1);
	}
	return r.n;
}
