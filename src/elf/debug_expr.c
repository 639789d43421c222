/*
 * Debug information: location expressions (DWARF 5, 2.5 and 2.6), computed as a register plus a number.
 */
#include "elf/debug_priv.h"

#include <dwarf.h>
#include <stdlib.h>

#include "elf/libdw.h"

enum { MAX_STACK = 8, MAX_DEPTH = 4, X86_64_SP = 7 };

struct sum {
	enum debug_base base;
	unsigned int reg;
	int64_t off;
};

struct eval {
	struct debug *d;
	const struct debug_scopes *scopes;
	Dwarf_Attribute *attr;		/* the attribute that has the expression, or NULL */
	unsigned int depth;
	const char *why;
	bool is_reg, is_value;		/* the result is a register, a value */
	struct sum stack[MAX_STACK];
	unsigned int n;
};

static bool run(struct eval *e, const Dwarf_Op *ops, size_t n);

static bool refuse(struct eval *e, const char *why)
{
	e->why = why;
	return false;
}

static bool push(struct eval *e, enum debug_base base, unsigned int reg, int64_t off)
{
	if (e->n == MAX_STACK)
		return refuse(e, "its place is too complicated");
	e->stack[e->n++] = (struct sum){ base, reg, off };
	return true;
}

/* Push the result of another expression, plus @off. */
static bool push_other(struct eval *e, const Dwarf_Op *ops, size_t n, int64_t off)
{
	struct eval other = { .d = e->d, .scopes = e->scopes, .depth = e->depth + 1 };

	if (other.depth > MAX_DEPTH)
		return refuse(e, "its place is too complicated");
	if (!run(&other, ops, n))
		return refuse(e, other.why);
	return push(e, other.stack[0].base, other.stack[0].reg, other.stack[0].off + off);
}

static bool push_cfa(struct eval *e)
{
	Dwarf_CFI *cfis[2] = { e->d->eh, libdw.getcfi(e->d->dw) };
	bool done = false;

	for (int i = 0; i < 2 && !done; i++) {
		Dwarf_Frame *frame = NULL;
		Dwarf_Op *ops;
		size_t n;

		if (!cfis[i] || libdw.cfi_addrframe(cfis[i], e->scopes->pc, &frame))
			continue;
		done = !libdw.frame_cfa(frame, &ops, &n) && n > 0 && push_other(e, ops, n, 0);
		free(frame);
	}
	return done || refuse(e, "the frame of its function is not described");
}

static bool push_frame(struct eval *e, int64_t off)
{
	Dwarf_Attribute attr;
	Dwarf_Addr entry;
	Dwarf_Op *ops;
	size_t n;

	if (!e->scopes->frame ||
	    !libdw.attr_integrate((Dwarf_Die *)&e->scopes->v[e->scopes->frame], DW_AT_frame_base, &attr) ||
	    libdw.getlocation_addr(&attr, e->scopes->pc, &ops, &n, 1) < 1)
		return refuse(e, "the frame of its function is not described");
	/* A register is the frame base only after the prologue has set it. */
	if (n == 1 && ops[0].atom >= DW_OP_reg0 && ops[0].atom <= DW_OP_reg31 &&
	    (libdw.entrypc((Dwarf_Die *)&e->scopes->v[e->scopes->frame], &entry) || entry == e->scopes->pc))
		return refuse(e, "at the entry of its function the frame is not set up yet: use .statement");
	return push_other(e, ops, n, off);
}

static bool run_one(struct eval *e, const Dwarf_Op *op)
{
	struct sum *top = e->n ? &e->stack[e->n - 1] : NULL;
	Dwarf_Attribute of;
	Dwarf_Addr addr;

	if (op->atom >= DW_OP_breg0 && op->atom <= DW_OP_breg31)
		return push(e, DEBUG_REG, op->atom - DW_OP_breg0, (int64_t)op->number);
	if (op->atom >= DW_OP_lit0 && op->atom <= DW_OP_lit31)
		return push(e, DEBUG_CONST, 0, op->atom - DW_OP_lit0);
	if (op->atom >= DW_OP_reg0 && op->atom <= DW_OP_reg31) {
		e->is_reg = true;
		return push(e, DEBUG_REG, op->atom - DW_OP_reg0, 0);
	}
	switch (op->atom) {
	case DW_OP_addr:
		return push(e, DEBUG_ADDR, 0, (int64_t)op->number);
	case DW_OP_addrx:
	case DW_OP_GNU_addr_index:
		if (!e->attr || libdw.getlocation_attr(e->attr, op, &of) || libdw.formaddr(&of, &addr))
			break;
		return push(e, DEBUG_ADDR, 0, (int64_t)addr);
	case DW_OP_bregx:
		return push(e, DEBUG_REG, (unsigned int)op->number, (int64_t)op->number2);
	case DW_OP_fbreg:
		return push_frame(e, (int64_t)op->number);
	case DW_OP_call_frame_cfa:
		return push_cfa(e);
	case DW_OP_const1u: case DW_OP_const1s: case DW_OP_const2u: case DW_OP_const2s: case DW_OP_const4u:
	case DW_OP_const4s: case DW_OP_const8u: case DW_OP_const8s: case DW_OP_constu: case DW_OP_consts:
		return push(e, DEBUG_CONST, 0, (int64_t)op->number);
	case DW_OP_plus_uconst:
		if (!top)
			break;
		top->off += (int64_t)op->number;
		return true;
	case DW_OP_plus:
		if (e->n < 2 || (top[0].base != DEBUG_CONST && top[-1].base != DEBUG_CONST))
			break;
		if (top[-1].base == DEBUG_CONST) {
			top[-1].base = top[0].base;
			top[-1].reg = top[0].reg;
		}
		top[-1].off += top[0].off;
		e->n--;
		return true;
	case DW_OP_minus:
		if (e->n < 2 || top[0].base != DEBUG_CONST)
			break;
		top[-1].off -= top[0].off;
		e->n--;
		return true;
	case DW_OP_stack_value:
		e->is_value = true;
		return true;
	case DW_OP_form_tls_address:
	case DW_OP_GNU_push_tls_address:
		if (!top || top->base != DEBUG_CONST)
			break;
		top->base = DEBUG_TLS;
		return true;
	case DW_OP_piece:
	case DW_OP_bit_piece:
		return refuse(e, "it is kept in pieces");
	case DW_OP_entry_value:
	case DW_OP_GNU_entry_value:
		return refuse(e, "here only the function's caller had it: probe the function's entry");
	default:
		break;
	}
	return refuse(e, "its place is too complicated");
}

static bool run(struct eval *e, const Dwarf_Op *ops, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (!run_one(e, &ops[i]))
			return false;
	return e->n == 1 || refuse(e, n ? "its place is too complicated" : "it was optimized away");
}

/* Parse pieces in registers; a piece elsewhere or without a location gets DEBUG_NO_REG.  False: it is no such list. */
static bool in_parts(const Dwarf_Op *ops, size_t n, struct debug_var *ret)
{
	unsigned int reg = DEBUG_NO_REG;
	bool any = false;

	for (size_t i = 0; i < n; i++) {
		if (ops[i].atom >= DW_OP_reg0 && ops[i].atom <= DW_OP_reg31) {
			reg = ops[i].atom - DW_OP_reg0;
			any = true;
			continue;
		}
		if (ops[i].atom == DW_OP_bit_piece)
			return false;
		if (ops[i].atom != DW_OP_piece) {
			reg = DEBUG_NO_REG;
			continue;
		}
		if (ret->nparts == DEBUG_MAX_PARTS || ops[i].number > UINT16_MAX)
			return false;
		ret->parts[ret->nparts++] = (struct debug_part){ (uint16_t)reg, (uint16_t)ops[i].number };
		reg = DEBUG_NO_REG;
	}
	return any && ret->nparts && ops[n - 1].atom == DW_OP_piece;
}

bool debug_frame_size(struct debug *d, uint64_t pc, int64_t *ret)
{
	Dwarf_CFI *cfis[2] = { d->eh, libdw.getcfi(d->dw) };
	bool done = false;

	for (int i = 0; i < 2 && !done; i++) {
		Dwarf_Frame *frame = NULL;
		Dwarf_Op *ops;
		size_t n;

		if (!cfis[i] || libdw.cfi_addrframe(cfis[i], pc, &frame))
			continue;
		done = !libdw.frame_cfa(frame, &ops, &n) && n == 1 &&
		       (ops[0].atom == DW_OP_breg7 || (ops[0].atom == DW_OP_bregx && ops[0].number == X86_64_SP));
		if (done)
			*ret = (int64_t)(ops[0].atom == DW_OP_breg7 ? ops[0].number : ops[0].number2);
		free(frame);
	}
	return done;
}

/* The computation for one operation, or false. */
static bool step_of(struct eval *e, const Dwarf_Op *op, struct calc_step *s)
{
	static const enum calc_kind kinds[] = { [DEBUG_CONST] = CALC_CONST, [DEBUG_REG] = CALC_REG, [DEBUG_ADDR] = CALC_ADDR };
	static const struct { uint8_t atom; enum calc_kind kind; } plain[] = {
		{ DW_OP_drop, CALC_DROP }, { DW_OP_swap, CALC_SWAP }, { DW_OP_rot, CALC_ROT }, { DW_OP_plus, CALC_ADD },
		{ DW_OP_minus, CALC_SUB }, { DW_OP_mul, CALC_MUL }, { DW_OP_and, CALC_AND }, { DW_OP_or, CALC_OR },
		{ DW_OP_xor, CALC_XOR }, { DW_OP_shl, CALC_SHL }, { DW_OP_shr, CALC_SHR }, { DW_OP_shra, CALC_SAR },
		{ DW_OP_eq, CALC_EQ }, { DW_OP_ne, CALC_NE }, { DW_OP_lt, CALC_LT }, { DW_OP_le, CALC_LE },
		{ DW_OP_neg, CALC_NEG }, { DW_OP_not, CALC_NOT },
	};

	for (size_t i = 0; i < sizeof(plain) / sizeof(plain[0]); i++) {
		if (plain[i].atom != op->atom)
			continue;
		s->kind = plain[i].kind;
		return true;
	}
	switch (op->atom) {
	case DW_OP_dup:
		s->kind = CALC_PICK;
		return true;
	case DW_OP_over:
		s->kind = CALC_PICK;
		s->n = 1;
		return true;
	case DW_OP_pick:
		s->kind = CALC_PICK;
		s->n = (int64_t)op->number;
		return true;
	case DW_OP_deref:
		s->kind = CALC_LOAD;
		s->n = 8;
		return true;
	case DW_OP_deref_size:
		s->kind = CALC_LOAD;
		s->n = (int64_t)op->number;
		return s->n == 1 || s->n == 2 || s->n == 4 || s->n == 8;
	default:
		break;
	}
	/* A sum: of registers, constants, the frame. */
	e->n = 0;
	if (op->atom == DW_OP_plus_uconst || !run_one(e, op) || e->n != 1 || e->stack[0].base == DEBUG_TLS)
		return false;
	*s = (struct calc_step){ kinds[e->stack[0].base], e->stack[0].reg, e->stack[0].off };
	return true;
}

/* Follow the number of values on the stack; false: there are too few or too many. */
static bool keeps_stack(const struct calc_step *s, int *depth)
{
	int takes = 2, gives = 1;

	switch (s->kind) {
	case CALC_CONST: case CALC_REG: case CALC_ADDR:
		takes = 0;
		break;
	case CALC_PICK:
		if (s->n < 0 || s->n >= CALC_MAX_STACK)
			return false;
		takes = (int)s->n + 1;
		gives = takes + 1;
		break;
	case CALC_DROP:
		takes = 1;
		gives = 0;
		break;
	case CALC_SWAP:
		gives = 2;
		break;
	case CALC_ROT:
		takes = gives = 3;
		break;
	case CALC_LOAD: case CALC_NEG: case CALC_NOT:
		takes = 1;
		break;
	default:
		break;
	}
	if (*depth < takes)
		return false;
	*depth += gives - takes;
	return *depth <= CALC_MAX_STACK;
}

/* What no register plus a number is: a computation. */
static bool compute(struct eval *e, const Dwarf_Op *ops, size_t n, struct debug_var *ret)
{
	int depth = 0;

	ret->nsteps = 0;
	for (size_t i = 0; i < n; i++) {
		struct calc_step s = { 0 };

		if (ops[i].atom == DW_OP_stack_value && i + 1 == n) {
			ret->is_value = true;
			continue;
		}
		if (ret->nsteps + 2 > CALC_MAX_STEPS)
			return false;
		if (ops[i].atom == DW_OP_plus_uconst) {
			ret->steps[ret->nsteps++] = (struct calc_step){ .kind = CALC_CONST, .n = (int64_t)ops[i].number };
			s.kind = CALC_ADD;
			depth++;
		} else if (!step_of(e, &ops[i], &s)) {
			return false;
		}
		if (!keeps_stack(&s, &depth))
			return false;
		ret->steps[ret->nsteps++] = s;
	}
	return depth == 1;
}

const char *debug_eval(struct debug *d, const struct debug_scopes *s, Dwarf_Attribute *attr, const Dwarf_Op *ops, size_t n,
		       struct debug_var *ret)
{
	struct eval e = { .d = d, .scopes = s, .attr = attr };

	ret->nparts = 0;
	if (in_parts(ops, n, ret))
		return NULL;
	ret->nparts = 0;
	if (!run(&e, ops, n)) {
		struct eval again = { .d = d, .scopes = s, .attr = attr };

		/* A register alone is no value on the stack. */
		if (n < 2 || e.is_reg || !compute(&again, ops, n, ret)) {
			ret->nsteps = 0;
			return e.why;
		}
		return NULL;
	}
	ret->base = e.stack[0].base;
	ret->reg = e.stack[0].reg;
	ret->off = e.stack[0].off;
	ret->is_value = e.is_reg || e.is_value;
	return NULL;
}
