/*
 * Constant integer expressions: array sizes, bit-field widths, enumerators.
 *
 * Values are computed as C does on an LP64 machine: in the type that the usual arithmetic conversions give.
 */
#include "d/parser.h"

#include <string.h>

#include "base/arena.h"
#include "d/lib.h"

struct value {
	uint64_t v;		/* extended to 64 bits by its type's sign */
	const struct type *type;
};

static uint64_t convert(uint64_t v, const struct type *type)
{
	unsigned int shift = (unsigned int)(64 - type_size(type) * 8);

	if (type_strip(type)->kind == TYPE_INT && type_strip(type)->integer.rank == RANK_BOOL)
		return v != 0;
	if (type_is_signed(type))
		return (uint64_t)((int64_t)(v << shift) >> shift);
	return v << shift >> shift;
}

static bool eval(const struct d_prog *p, const struct d_node *n, struct value *ret);

/* A constant shifted out of an int, which C leaves undefined, is a long: 1 << 63, as the DTraces have it. */
static const struct type *shift_type(const struct d_prog *p, enum d_op op, const struct type *lhs, uint64_t count)
{
	const struct type *t = type_promote(p->types, lhs, 0);

	if (op != D_OP_SHL || type_size(t) >= 8 || count < 8 * type_size(t) || count > 63)
		return t;
	return type_basic(p->types, type_is_signed(t) ? TYPE_B_LONG : TYPE_B_ULONG);
}

static bool is_comparison(enum d_op op)
{
	return op == D_OP_EQ || op == D_OP_NE || op == D_OP_LT || op == D_OP_LE || op == D_OP_GT || op == D_OP_GE;
}

static bool eval_binary(const struct d_prog *p, const struct d_node *n, struct value *ret)
{
	const struct type *t, *t_int = type_basic(p->types, TYPE_B_INT);
	struct value a, b;
	uint64_t x, y, v;
	bool sign;

	if (!eval(p, n->lhs, &a))
		return false;
	if ((n->op == D_OP_LAND && !a.v) || (n->op == D_OP_LOR && a.v)) {
		*ret = (struct value){ n->op == D_OP_LOR, t_int };
		return true;
	}
	if (!eval(p, n->rhs, &b))
		return false;
	if (n->op == D_OP_SHL || n->op == D_OP_SHR)
		t = shift_type(p, n->op, a.type, b.v);
	else
		t = (is_comparison(n->op) ? type_arith : type_wider)(p->types, a.type, b.type);
	sign = type_is_signed(t);
	x = convert(a.v, t);
	y = n->op == D_OP_SHL || n->op == D_OP_SHR ? b.v : convert(b.v, t);
	ret->type = t_int;
	switch (n->op) {
	case D_OP_ADD:	v = x + y; break;
	case D_OP_SUB:	v = x - y; break;
	case D_OP_MUL:	v = x * y; break;
	case D_OP_AND:	v = x & y; break;
	case D_OP_OR:	v = x | y; break;
	case D_OP_XOR:	v = x ^ y; break;
	case D_OP_DIV:
	case D_OP_MOD:
		if (!y)
			return false;
		if (sign && y == UINT64_MAX)	/* the one quotient that overflows */
			v = n->op == D_OP_DIV ? -x : 0;
		else if (sign)
			v = (uint64_t)(n->op == D_OP_DIV ? (int64_t)x / (int64_t)y : (int64_t)x % (int64_t)y);
		else
			v = n->op == D_OP_DIV ? x / y : x % y;
		break;
	case D_OP_SHL:
	case D_OP_SHR:
		if (y >= type_size(t) * 8)
			return false;
		v = n->op == D_OP_SHL ? x << y : sign ? (uint64_t)((int64_t)x >> y) : x >> y;
		break;
	case D_OP_EQ:	ret->v = x == y; return true;
	case D_OP_NE:	ret->v = x != y; return true;
	case D_OP_LT:	ret->v = sign ? (int64_t)x < (int64_t)y : x < y; return true;
	case D_OP_LE:	ret->v = sign ? (int64_t)x <= (int64_t)y : x <= y; return true;
	case D_OP_GT:	ret->v = sign ? (int64_t)x > (int64_t)y : x > y; return true;
	case D_OP_GE:	ret->v = sign ? (int64_t)x >= (int64_t)y : x >= y; return true;
	case D_OP_LAND:	ret->v = x && y; return true;
	case D_OP_LOR:	ret->v = x || y; return true;
	case D_OP_LXOR:	ret->v = !x != !y; return true;
	default:
		return false;
	}
	ret->type = t;
	ret->v = convert(v, t);
	return true;
}

static bool eval_unary(const struct d_prog *p, const struct d_node *n, struct value *ret)
{
	struct value a;

	if (!eval(p, n->base, &a))
		return false;
	ret->type = type_promote(p->types, a.type, 0);
	switch (n->op) {
	case D_OP_NEG:
		ret->v = -a.v;
		break;
	case D_OP_PLUS:
		ret->v = a.v;
		break;
	case D_OP_NOT:
		ret->v = ~a.v;
		break;
	case D_OP_LNOT:
		ret->v = !a.v;
		ret->type = type_basic(p->types, TYPE_B_INT);
		break;
	default:
		return false;
	}
	ret->v = convert(ret->v, ret->type);
	return true;
}

/* An enumerator, or an inline that is constant. */
static bool eval_name(const struct d_prog *p, const struct d_node *n, struct value *ret)
{
	const struct type_enumerator *e;
	size_t i;

	if (n->scope != D_GLOBAL_SCOPE || n->mod || !n->name)
		return false;
	e = type_find_enumerator(p->types, n->name);
	if (e) {
		*ret = (struct value){ (uint64_t)e->value, type_basic(p->types, TYPE_B_INT) };
		return true;
	}
	if (d_libs_need((struct d_prog *)(uintptr_t)p, n->name, D_LIB_VALUE)) {	/* only adds to the tables */
		e = type_find_enumerator(p->types, n->name);
		if (e) {
			*ret = (struct value){ (uint64_t)e->value, type_basic(p->types, TYPE_B_INT) };
			return true;
		}
	}
	for (i = 0; i < p->nitems; i++) {
		const struct d_inline *inl = p->items[i].inl;

		if (p->items[i].kind == D_ITEM_INLINE && inl->is_const && !strcmp(inl->name, n->name)) {
			*ret = (struct value){ inl->value, inl->value_type };
			return true;
		}
	}
	return false;
}

/* c ? a : b has the common type of both sides.  The side that is not taken need not be constant. */
static bool eval_cond(const struct d_prog *p, const struct d_node *n, struct value *ret)
{
	const struct type *type = n->type;
	struct value cond, other;

	if (!eval(p, n->cond, &cond) || !eval(p, cond.v ? n->lhs : n->rhs, ret))
		return false;
	if (!type && eval(p, cond.v ? n->rhs : n->lhs, &other) && !type_same(ret->type, other.type))
		type = type_wider(p->types, ret->type, other.type);
	if (type && type_is_integer(type))
		*ret = (struct value){ convert(ret->v, type), type };
	return true;
}

static bool eval(const struct d_prog *p, const struct d_node *n, struct value *ret)
{
	const struct type *size_type = type_basic(p->types, TYPE_B_ULONG);
	const struct type_member *m;
	uint64_t off;

	switch (n->kind) {
	case D_INT:
		if (!n->type)
			return false;
		*ret = (struct value){ convert(n->value, n->type), n->type };
		return true;
	case D_NAME:
		return eval_name(p, n, ret);
	case D_UNARY:
		return eval_unary(p, n, ret);
	case D_BINARY:
		return eval_binary(p, n, ret);
	case D_COND:
		return eval_cond(p, n, ret);
	case D_CAST:
		if (!n->ctype || !type_is_integer(n->ctype) || !eval(p, n->base, ret))
			return false;
		*ret = (struct value){ convert(ret->v, n->ctype), n->ctype };
		return true;
	case D_SIZEOF:
		if (!n->ctype || !type_size(n->ctype))
			return false;
		*ret = (struct value){ type_size(n->ctype), size_type };
		return true;
	case D_OFFSETOF:
		m = n->ctype && n->name ? type_find_member(n->ctype, n->name, &off) : NULL;
		if (!m || m->bits)
			return false;
		*ret = (struct value){ off / 8, size_type };
		return true;
	default:
		return false;
	}
}

bool const_value(const struct d_prog *p, const struct d_node *n, uint64_t *value, const struct type **type)
{
	struct value v;

	if (!eval(p, n, &v))
		return false;
	*value = v.v;
	*type = v.type;
	return true;
}

bool d_const(const struct d_prog *p, const struct d_node *n, int64_t *ret)
{
	struct value v;

	if (!eval(p, n, &v))
		return false;
	*ret = (int64_t)v.v;
	return true;
}
