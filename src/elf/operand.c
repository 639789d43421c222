/*
 * The operands of a marker: the machine's parser finds their form, this file resolves their symbols.
 *
 * A value relative to the program counter needs no load bias: when the site fires, the counter holds the
 * site's address, so the distance between symbol and site in the file is the distance in memory.
 */
#include "elf/obj.h"

#include <elf.h>
#include <string.h>

#include "elf/priv.h"

static void resolve(struct obj *o, const struct obj_marker *m, const struct arch *arch, struct arch_operand *op)
{
	bool fixed = o->info.type == ET_EXEC;
	uint64_t addr;

	if (memchr(op->sym, '@', op->sym_len)) {	/* x@tpoff(%rbx), x@dtpoff(%rax) */
		op->why = "in thread-local storage";
		return;
	}
	if (!obj_symbol(o, op->sym, op->sym_len, &addr)) {
		op->why = "relative to a symbol that the file does not name, or names twice";
		return;
	}
	addr += (uint64_t)op->value;
	switch (op->sym_kind) {
	case ARCH_SYM_LO12:
		op->value = (int64_t)(addr & 0xfff);
		break;
	case ARCH_SYM_PCREL:
		op->value = (int64_t)(addr - m->addr);
		break;
	case ARCH_SYM_ADDR:
		if (fixed) {
			op->value = (int64_t)addr;
		} else if (op->loc == ARCH_LOC_MEM && !op->reg && !op->index) {
			op->reg = arch->pc;
			op->value = (int64_t)(addr - m->addr);
		} else {
			op->why = "an address that depends on where the file is loaded";
			return;
		}
		break;
	}
	op->sym = NULL;
}

enum { OPERANDS_MAX = 32 };

static unsigned int read_operands(struct obj *o, const struct obj_marker *m, struct arch_operand *ops, unsigned int max)
{
	const struct arch *arch = o->info.elf_class == ELFCLASS64 ? arch_find(o->info.machine) : NULL;
	unsigned int n = arch_operands(arch, m->args, ops, max);

	for (unsigned int i = 0; i < n && i < max; i++) {
		if (ops[i].sym && !ops[i].why)
			resolve(o, m, arch, &ops[i]);
		else if (ops[i].reg && ops[i].reg->kind == ARCH_REG_PC && ops[i].loc == ARCH_LOC_MEM && !ops[i].why)
			ops[i].why = "a distance from an instruction that the note does not name";
	}
	return n;
}

/* For a marker with types each argument refers to one of its operands. */
unsigned int obj_operands(struct obj *o, const struct obj_marker *m, struct arch_operand *ops, unsigned int max)
{
	struct arch_operand all[OPERANDS_MAX];
	unsigned int n;

	if (!m->typed)
		return read_operands(o, m, ops, max);
	n = read_operands(o, m, all, OPERANDS_MAX);
	for (unsigned int i = 0; i < m->ntyped && i < max; i++) {
		unsigned int from = m->typed[i].operand;

		if (from < n && from < OPERANDS_MAX)
			ops[i] = all[from];
		else
			ops[i] = (struct arch_operand){ .size = 8, .why = "the site has fewer operands than its provider says" };
	}
	return m->ntyped;
}
