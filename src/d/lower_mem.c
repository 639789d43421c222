/*
 * Memory: targets of pointers, members, elements, bit-fields.
 *
 * Addresses in the traced process are read with ULOAD, all others with LOAD; the checker has set which of them a node
 * is.  Only the clause's own memory, from alloca() and copyin(), is written.
 *
 * Variables are not in memory.  The address of a part of one has the variable's number in its upper half and the
 * part's offset in its lower half, and is none that a machine has.  In a program that has such addresses, what
 * a pointer points to may be in each of those variables, or in memory.
 */
#include "d/lower.h"

#include "d/check.h"

ir_reg lower_step(struct lower *l, ir_reg ptr, const struct type *t, ir_reg i, int sign)
{
	uint64_t size = type_size(type_target(t));

	if (size > 1)
		i = ir_op2(&l->b, IR_MUL, i, ir_const(&l->b, (int64_t)size));
	return ir_op2(&l->b, sign < 0 ? IR_SUB : IR_ADD, ptr, i);
}

static ir_reg add_bytes(struct lower *l, ir_reg addr, uint64_t n)
{
	return n ? ir_op2(&l->b, IR_ADD, addr, ir_const(&l->b, (int64_t)n)) : addr;
}

enum { VARIABLE_ADDRESS = 0x4454 };	/* bits 48 to 63: not canonical */

static int64_t tag_of(const struct d_ident *id)
{
	return (int64_t)VARIABLE_ADDRESS << 16 | (int64_t)id->tag;
}

/* The address of @n, a part of a variable. */
static ir_reg part_address(struct lower *l, struct d_node *n)
{
	struct storage o;
	ir_reg addr;

	lower_storage(l, n, &o);
	addr = ir_const(&l->b, (int64_t)((uint64_t)tag_of(o.id) << 32 | (o.off & UINT32_MAX)));
	return o.dyn == IR_NO_REG ? addr : ir_op2(&l->b, IR_ADD, addr, o.dyn);
}

/* If @addr is in the variable @id: go on there, with its storage in @o.  The block for other addresses is returned. */
static struct ir_block *in_variable(struct lower *l, struct d_ident *id, ir_reg addr, struct storage *o)
{
	struct ir_block *here = ir_block_new(&l->b), *other = ir_block_new(&l->b);
	ir_reg upper = ir_op2(&l->b, IR_SHR, addr, ir_const(&l->b, 32));

	ir_br(&l->b, ir_op2(&l->b, IR_EQ, upper, ir_const(&l->b, tag_of(id))), here, other);
	ir_at(&l->b, here);
	*o = (struct storage){ .id = id, .dyn = ir_ext(&l->b, addr, 4, false) };
	return other;
}

ir_reg lower_load_at(struct lower *l, ir_reg addr, const struct type *t, unsigned int bit, unsigned int bits)
{
	struct ir_slot slot = type_slot(t);
	struct ir_block *done, *other;
	struct storage o;
	ir_reg v;

	if (!l->check->naddressed)
		return bits ? lower_bits(l, IR_LOAD, addr, bit, bits, slot.sign) :
			      ir_load(&l->b, IR_LOAD, addr, slot.width, slot.sign);
	v = ir_reg_new(&l->b, IR_INT);
	done = ir_block_new(&l->b);
	for (size_t i = 0; i < l->check->naddressed; i++) {
		other = in_variable(l, l->check->addressed[i], addr, &o);
		ir_mov(&l->b, v, lower_get(l, &o, t, bit, bits));
		ir_jmp(&l->b, done);
		ir_at(&l->b, other);
	}
	ir_mov(&l->b, v, bits ? lower_bits(l, IR_LOAD, addr, bit, bits, slot.sign) :
				ir_load(&l->b, IR_LOAD, addr, slot.width, slot.sign));
	ir_jmp(&l->b, done);
	ir_at(&l->b, done);
	return v;
}

void lower_store_at(struct lower *l, ir_reg addr, const struct type *t, unsigned int bit, unsigned int bits, ir_reg v)
{
	struct ir_block *done = ir_block_new(&l->b), *other;
	struct storage o;

	for (size_t i = 0; i < l->check->naddressed; i++) {
		other = in_variable(l, l->check->addressed[i], addr, &o);
		lower_put(l, &o, t, bit, bits, v);
		ir_jmp(&l->b, done);
		ir_at(&l->b, other);
	}
	if (bits)
		lower_store_bits(l, addr, bit, bits, v);
	else
		lower_store(l, addr, v, type_slot(t).width);
	ir_jmp(&l->b, done);
	ir_at(&l->b, done);
}

ir_reg lower_addr(struct lower *l, struct d_node *n)
{
	struct d_node *root = check_root(n);
	ir_reg base, i;

	if (root && root != n && root->kind == D_NAME && root->ident->tag)
		return part_address(l, n);
	switch (n->kind) {
	case D_UNARY:		/* *p */
		return lower_expr(l, n->base);
	case D_INDEX:		/* p[i] */
		base = lower_expr(l, n->base);
		i = lower_expr(l, n->args[0]);
		return lower_step(l, base, n->base->type, i, 1);
	case D_MEMBER:		/* of a bit-field: the address of its first byte */
		if (n->ident)
			return lower_expr(l, n);
		base = n->arrow ? lower_expr(l, n->base) : lower_addr(l, n->base);
		if (n->arrow && n->value / 8)	/* the fault tells of the pointer, not of the member */
			lower_fault_null(l, ir_op2(&l->b, IR_EQ, base, ir_const(&l->b, 0)));
		return add_bytes(l, base, n->value / 8);
	default:		/* a struct as a value: its value is its address */
		return lower_expr(l, n);
	}
}

ir_reg lower_bits(struct lower *l, enum ir_op op, ir_reg addr, unsigned int off, unsigned int bits, bool sign)
{
	unsigned int bytes = (off + bits + 7) / 8;
	ir_reg v;

	if (bytes == 1 || bytes == 2 || bytes == 4 || bytes == 8) {
		v = ir_load(&l->b, op, addr, bytes, false);
	} else {
		v = ir_load(&l->b, op, addr, 1, false);
		for (unsigned int i = 1; i < bytes && i < 8; i++) {
			ir_reg byte = ir_load(&l->b, op, add_bytes(l, addr, i), 1, false);

			byte = ir_op2(&l->b, IR_SHL, byte, ir_const(&l->b, 8 * i));
			v = ir_op2(&l->b, IR_OR, v, byte);
		}
	}
	v = ir_op2(&l->b, IR_SHL, v, ir_const(&l->b, 64 - off - bits));
	return ir_op2(&l->b, sign ? IR_SAR : IR_SHR, v, ir_const(&l->b, 64 - bits));
}

void lower_store(struct lower *l, ir_reg addr, ir_reg v, unsigned int width)
{
	const ir_reg args[] = { addr, v, ir_const(&l->b, width) };

	ir_call(&l->b, IR_FN_POKE, args, 3);
}

/* Byte by byte: memory behind the bit-field may not be accessible. */
void lower_store_bits(struct lower *l, ir_reg addr, unsigned int off, unsigned int bits, ir_reg v)
{
	for (unsigned int at = 0; at < off + bits; at += 8) {
		unsigned int from = at < off ? off - at : 0, to = off + bits - at < 8 ? off + bits - at : 8;
		int64_t mask = (1 << to) - (1 << from);
		ir_reg part = v, old, byte = add_bytes(l, addr, at / 8);

		if (at < off)
			part = ir_op2(&l->b, IR_SHL, v, ir_const(&l->b, off - at));
		else if (at > off)
			part = ir_op2(&l->b, IR_SHR, v, ir_const(&l->b, at - off));
		if (mask != 0xff) {
			old = ir_op2(&l->b, IR_AND, ir_load(&l->b, IR_LOAD, byte, 1, false), ir_const(&l->b, 0xff & ~mask));
			part = ir_op2(&l->b, IR_AND, part, ir_const(&l->b, mask));
			part = ir_op2(&l->b, IR_OR, old, part);
		}
		lower_store(l, byte, part, 1);
	}
}

ir_reg lower_load(struct lower *l, struct d_node *n)
{
	const struct type_member *m = n->kind == D_MEMBER && !n->ident ? n->aux : NULL;
	enum ir_op op = n->user ? IR_ULOAD : IR_LOAD;
	struct ir_slot slot;
	struct storage o;
	ir_reg addr;

	if (check_root(n)) {
		lower_storage(l, n, &o);
		if (type_is_string(n->type))
			return lower_get_string(l, &o);
		if (!type_is_scalar(n->type))
			return lower_in_memory(l, &o, n->type);
		return lower_get(l, &o, n->type, m ? n->value % 8 : 0, m ? m->bits : 0);
	}
	addr = lower_addr(l, n);
	if (!n->user && type_is_scalar(n->type) && !type_is_string(n->type))
		return lower_load_at(l, addr, n->type, m ? n->value % 8 : 0, m ? m->bits : 0);
	if (m && m->bits)
		return lower_bits(l, op, addr, n->value % 8, m->bits, type_is_signed(m->type));
	if (type_is_string(n->type))
		return lower_string_at(l, addr, n->user);
	if (!type_is_scalar(n->type))
		return addr;
	slot = type_slot(n->type);
	return ir_load(&l->b, op, addr, slot.width, slot.sign);
}
