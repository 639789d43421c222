/*
 * Debug information: location expressions (DWARF 5, 2.5 and 2.6), computed as a register plus a number.
 */
#include "elf/debug_priv.h"

#include <dwarf.h>
#include <stdlib.h>

enum { MAX_STACK = 8, MAX_DEPTH = 4 };

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
	Dwarf_CFI *cfis[2] = { e->d->eh, dwarf_getcfi(e->d->dw) };
	bool done = false;

	for (int i = 0; i < 2 && !done; i++) {
		Dwarf_Frame *frame = NULL;
		Dwarf_Op *ops;
		size_t n;

		if (!cfis[i] || dwarf_cfi_addrframe(cfis[i], e->scopes->pc, &frame))
			continue;
		done = !dwarf_frame_cfa(frame, &ops, &n) && n > 0 && push_other(e, ops, n, 0);
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
	    !dwarf_attr_integrate((Dwarf_Die *)&e->scopes->v[e->scopes->frame], DW_AT_frame_base, &attr) ||
	    dwarf_getlocation_addr(&attr, e->scopes->pc, &ops, &n, 1) < 1)
		return refuse(e, "the frame of its function is not described");
	/* A register is the frame base only after the prologue has set it. */
	if (n == 1 && ops[0].atom >= DW_OP_reg0 && ops[0].atom <= DW_OP_reg31 &&
	    (dwarf_entrypc((Dwarf_Die *)&e->scopes->v[e->scopes->frame], &entry) || entry == e->scopes->pc))
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
		if (!e->attr || dwarf_getlocation_attr(e->attr, op, &of) || dwarf_formaddr(&of, &addr))
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
		return refuse(e, "it is thread-local");
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

const char *debug_eval(struct debug *d, const struct debug_scopes *s, Dwarf_Attribute *attr, const Dwarf_Op *ops, size_t n,
		       struct debug_var *ret)
{
	struct eval e = { .d = d, .scopes = s, .attr = attr };

	ret->nparts = 0;
	if (in_parts(ops, n, ret))
		return NULL;
	ret->nparts = 0;
	if (!run(&e, ops, n))
		return e.why;
	ret->base = e.stack[0].base;
	ret->reg = e.stack[0].reg;
	ret->off = e.stack[0].off;
	ret->is_value = e.is_reg || e.is_value;
	return NULL;
}
