/*
 * Clauses of which it can be said in a few words what they do, so that a process of the target place does it without running the
 * program: laps and spans (lap.c), and records of what follows from the event and the thread alone,
 *
 *	printf("%s:%d", copyinstr(arg1), arg2)
 */
#include "bpf/ebpf.h"

#include <string.h>

#include "base/arena.h"
#include "bpf/unit.h"

/* What is in a register: a field, if the record has it, or a constant. */
struct content {
	enum { CONTENT_OTHER, CONTENT_FIELD, CONTENT_CONSTANT } kind;
	int64_t n;		/* enum abi_field; the constant */
};

static struct content of_field(enum abi_field f)
{
	return (struct content){ CONTENT_FIELD, f };
}

/* copyinstr() of the file or the name, as long as strings may be. */
static struct content copied(const struct ebpf_unit *u, struct content address, struct content size)
{
	bool known = address.kind == CONTENT_FIELD && (address.n == ABI_FIELD_ARG0 || address.n == ABI_FIELD_ARG1);

	if (!known || size.kind != CONTENT_CONSTANT || (size.n >= 0 && size.n < u->prog->strsize))
		return (struct content){ CONTENT_OTHER };
	return of_field(address.n == ABI_FIELD_ARG0 ? ABI_FIELD_TEXT0 : ABI_FIELD_TEXT1);
}

static struct content result_of(const struct ebpf_unit *u, const struct content *regs, const struct ir_insn *i)
{
	if (i->op == IR_CONST)
		return (struct content){ CONTENT_CONSTANT, i->imm };
	if (i->op == IR_ARG && i->imm >= 0 && i->imm <= 3)
		return of_field((enum abi_field)(ABI_FIELD_ARG0 + i->imm));
	if (i->op == IR_CALL && i->fn == IR_FN_COPYINSTR)
		return copied(u, regs[i->args[0]], regs[i->args[1]]);
	if (i->op == IR_BUILTIN && i->bi == IR_B_TIMESTAMP)
		return of_field(ABI_FIELD_TIME);
	if (i->op == IR_BUILTIN && i->bi == IR_B_PID)
		return of_field(ABI_FIELD_PID);
	if (i->op == IR_BUILTIN && i->bi == IR_B_TID)
		return of_field(ABI_FIELD_TID);
	return (struct content){ CONTENT_OTHER };
}

static bool is_text(int64_t field)
{
	return field == ABI_FIELD_TEXT0 || field == ABI_FIELD_TEXT1;
}

/* False: it has something else. */
static bool emit(const struct content *regs, const struct ir_insn *i, struct ebpf_known *ret)
{
	const struct ir_rec *rec = i->rec;

	if (rec->stat || rec->nfields > ABI_FIELD_MOST)
		return false;
	for (uint32_t k = 0; k < rec->nfields; k++) {
		const struct content *v = &regs[i->args[k]];

		if (v->kind != CONTENT_FIELD || is_text(v->n) != (rec->fields[k].type == IR_STR))
			return false;
		ret->fields |= (uint32_t)v->n << (k * ABI_FIELD_BITS);
	}
	ret->rec = rec->id;
	ret->nfields = rec->nfields;
	return true;
}

static struct ebpf_known known_record(const struct ebpf_unit *u, const struct ir_clause *c)
{
	const struct ebpf_known none = { .what = ABI_KNOWN_NONE };
	struct ebpf_known known = { .what = ABI_KNOWN_NONE, .strsize = u->prog->strsize };
	const struct ir_block *b = c->blocks[0];
	struct content *regs = arena_alloc(u->prog->arena, (c->nregs + 1) * sizeof(*regs));

	memset(regs, 0, (c->nregs + 1) * sizeof(*regs));
	if (c->nblocks != 1)
		return none;
	for (uint32_t k = 0; k < b->n; k++) {
		const struct ir_insn *i = &b->insns[k];
		struct content result;

		if (i->op == IR_RET)
			return known;
		if (i->op == IR_EMIT) {
			if (known.what || !emit(regs, i, &known))
				return none;
			known.what = ABI_KNOWN_RECORD;
			continue;
		}
		result = result_of(u, regs, i);
		if (result.kind == CONTENT_OTHER)
			return none;
		regs[i->dst] = result;
	}
	return none;
}

struct ebpf_known ebpf_known(const struct ebpf_unit *u, const struct ir_clause *c)
{
	struct ebpf_known known = lap_known(u, c);

	return known.what ? known : known_record(u, c);
}
