#include "d/lower.h"

#include <assert.h>
#include <string.h>

#include "abi/record.h"
#include "base/arena.h"
#include "d/check.h"
#include "d/parse.h"

/* Wrap @r, the result of an operation on values of type @t, to the range of @t. */
static ir_reg keep(struct lower *l, ir_reg r, const struct type *t)
{
	struct ir_slot s = type_slot(t);

	return ir_ext(&l->b, r, s.width, s.sign);
}

ir_reg lower_convert(struct lower *l, ir_reg r, const struct type *from, const struct type *to)
{
	const struct type *base = type_strip(to);
	struct ir_slot f = type_slot(from), t = type_slot(to);

	if (base->kind == TYPE_INT && base->integer.rank == RANK_BOOL)
		return ir_op2(&l->b, IR_NE, r, ir_const(&l->b, 0));
	if (t.width == 8 || (f.width < t.width && (!f.sign || t.sign)) || (f.width == t.width && f.sign == t.sign))
		return r;
	return ir_ext(&l->b, r, t.width, t.sign);
}

ir_reg lower_string_at(struct lower *l, ir_reg addr, bool user)
{
	ir_reg args[2] = { addr };

	if (!user)
		return ir_call(&l->b, IR_FN_STRINGOF, args, 1);
	args[1] = ir_const(&l->b, l->prog->strsize);
	return ir_call(&l->b, IR_FN_COPYINSTR, args, 2);
}

bool lower_is_user(struct d_node *n)
{
	return n->user && (type_is_ptr(n->type) || !check_root(n));
}

ir_reg lower_string(struct lower *l, struct d_node *n)
{
	ir_reg r;

	if (type_is_string(n->type))
		return lower_expr(l, n);
	if (node_is_zero(l->check, n)) {
		if (l->ask_null)
			l->null = ir_const(&l->b, 1);
		l->ask_null = false;
		return ir_strc(&l->b, "");
	}
	l->ask_null = false;
	r = lower_string_at(l, lower_expr(l, n), lower_is_user(n));
	l->null = IR_NO_REG;
	return r;
}

/*
 * NULL as a string has no text: copies and comparisons take it as "", and what reads a string faults.  An element
 * of an array that was never assigned is NULL, a thread-local variable likewise; so is what strchr() and the like
 * did not find.  Other variables begin as "", and have a flag if some assignment may make them NULL.
 */
static ir_reg lower_maybe_null(struct lower *l, struct d_node *n)
{
	ir_reg r;

	l->ask_null = true;
	l->null = IR_NO_REG;
	r = lower_string(l, n);
	l->ask_null = false;
	return r;
}

void lower_fault_null(struct lower *l, ir_reg null)
{
	struct ir_block *bad, *on;

	if (null == IR_NO_REG)
		return;
	bad = ir_block_new(&l->b);
	on = ir_block_new(&l->b);
	ir_br(&l->b, null, bad, on);
	ir_at(&l->b, bad);
	ir_fault(&l->b, ABI_FAULT_BADADDR, ir_const(&l->b, 0));
	ir_at(&l->b, on);
}

ir_reg lower_text(struct lower *l, struct d_node *n)
{
	ir_reg r = lower_maybe_null(l, n);

	lower_fault_null(l, l->null);
	return r;
}

ir_reg lower_as(struct lower *l, struct d_node *n, const struct type *to)
{
	if (type_is_string(to))
		return lower_string(l, n);
	if (type_is_void(to))
		return lower_expr(l, n);
	return lower_convert(l, lower_expr(l, n), n->type, to);
}

/* --- variables --------------------------------------------------------------------------------------- */

static const enum ir_class classes[SPACE_MAX] = {
	[SPACE_GLOBAL] = IR_GLOBAL, [SPACE_SELF] = IR_THREAD, [SPACE_THIS] = IR_CLAUSE,
};

struct ir_var *lower_var(struct lower *l, struct d_ident *id)
{
	if (!id->var)
		id->var = ir_var_new(l->prog, id->name, classes[id->space], type_slot(id->type));
	return id->var;
}

/* The flag of the string @id; NULL: it is never NULL. */
static struct ir_var *lower_flag(struct lower *l, struct d_ident *id)
{
	const struct type *t = l->check->t_int;

	if (!type_is_string(id->type) || (id->space != SPACE_SELF && !id->nullable))
		return NULL;
	if (!id->flag)
		id->flag = ir_var_new(l->prog, arena_printf(l->prog->arena, "%s.null", id->name), classes[id->space],
				      type_slot(t));
	return id->flag;
}

static struct ir_map *lower_map(struct lower *l, struct d_ident *id)
{
	struct ir_map *m = id->map;

	if (m)
		return m;
	m = id->map = ir_map_new(l->prog, id->name, classes[id->space]);
	m->nkeys = lower_key_slots(id, m->keys);
	m->value = type_slot(id->type);
	m->zero_frees = !type_is_string(id->type);	/* "" is a string, and NULL is none */
	return m;
}

ir_reg lower_key(struct lower *l, struct d_node *n, const struct type *to)
{
	ir_reg r;

	l->keys++;
	r = lower_as(l, n, to);
	l->keys--;
	return r;
}

uint32_t lower_key_slots(const struct d_ident *id, struct ir_slot *slots)
{
	uint32_t n = 0;

	for (size_t i = 0; i < id->nkeys; i++) {
		uint64_t words = type_is_sou(id->keys[i]) ? (type_size(id->keys[i]) + 7) / 8 : 1;

		for (uint64_t w = 0; w < words; w++, n++) {
			if (slots)
				slots[n] = type_is_sou(id->keys[i]) ? (struct ir_slot){ IR_INT, 8, false, 0 } : type_slot(id->keys[i]);
		}
	}
	return n;
}

/* The words of the struct or union @n into @keys; returns how many. */
static uint32_t lower_object_key(struct lower *l, struct d_node *n, ir_reg *keys)
{
	const struct type *word = type_int(l->check->types, 8, false);
	uint64_t size = type_size(n->type);
	struct storage o, part;
	uint32_t count = 0;

	lower_storage(l, n, &o);
	for (uint64_t at = 0; at < size; at += 8) {
		part = lower_part(l, &o, at);
		keys[count++] = lower_get(l, &part, word, 0, size - at < 8 ? (unsigned int)(8 * (size - at)) : 0);
	}
	return count;
}

void lower_keys(struct lower *l, const struct d_ident *id, struct d_node *n, ir_reg *keys)
{
	for (size_t i = 0; i < id->nkeys; i++) {
		if (type_is_sou(id->keys[i]))
			keys += lower_object_key(l, n->args[i], keys);
		else
			*keys++ = lower_key(l, n->args[i], id->keys[i]);
	}
}

/* A variable, an element of an associative array, or (type) a scalar or string in an object; its keys computed once. */
struct lvalue {
	struct ir_var *var;
	struct ir_map *map;
	ir_reg keys[IR_MAX_KEYS];
	const struct type *type;
	struct storage obj;
	uint64_t bit;
	unsigned int bits;
};

static bool is_composite(const struct type *t)
{
	return type_is_sou(t) || type_is_array(t) || type_is_float(t);
}

static void lower_lvalue(struct lower *l, struct d_node *n, struct lvalue *p)
{
	const struct d_node *root = check_root(n);

	p->var = NULL;
	p->map = NULL;
	p->type = NULL;
	if (root != n || is_composite(n->type)) {
		const struct type_member *m = n->kind == D_MEMBER ? n->aux : NULL;

		p->type = n->type;
		lower_storage(l, n, &p->obj);
		p->bits = m ? m->bits : 0;
		p->bit = m ? n->value % 8 : 0;
	} else if (n->kind == D_NAME) {
		p->var = lower_var(l, n->ident);
	} else {
		p->map = lower_map(l, n->ident);
		lower_keys(l, n->ident, n, p->keys);
	}
}

static ir_reg get(struct lower *l, const struct lvalue *p)
{
	if (p->type && type_is_string(p->type))
		return lower_get_string(l, &p->obj);
	if (p->type)
		return lower_get(l, &p->obj, p->type, p->bit, p->bits);
	return p->var ? ir_vld(&l->b, p->var) : ir_mld(&l->b, p->map, p->keys);
}

/* The element of an array, deleted if @null. */
static void put_element(struct lower *l, const struct lvalue *p, ir_reg val, ir_reg null)
{
	struct ir_block *gone, *kept, *done;

	if (null == IR_NO_REG) {
		ir_mst(&l->b, p->map, val, p->keys);
		return;
	}
	gone = ir_block_new(&l->b);
	kept = ir_block_new(&l->b);
	done = ir_block_new(&l->b);
	ir_br(&l->b, null, gone, kept);
	ir_at(&l->b, gone);
	ir_mdel(&l->b, p->map, p->keys);
	ir_jmp(&l->b, done);
	ir_at(&l->b, kept);
	ir_mst(&l->b, p->map, val, p->keys);
	ir_jmp(&l->b, done);
	ir_at(&l->b, done);
}

/* Store the string @val, which @null says is NULL, in @id or in @p, an element of it. */
static void put_string(struct lower *l, const struct lvalue *p, struct d_ident *id, ir_reg val, ir_reg null)
{
	struct ir_var *flag;
	ir_reg one;

	if (p->map) {
		put_element(l, p, val, null);
		return;
	}
	ir_vst(&l->b, p->var, val);
	flag = lower_flag(l, id);
	if (!flag)
		return;
	if (id->space != SPACE_SELF)
		one = null == IR_NO_REG ? ir_const(&l->b, 0) : null;
	else
		one = null == IR_NO_REG ? ir_const(&l->b, 1) : ir_op2(&l->b, IR_EQ, null, ir_const(&l->b, 0));
	ir_vst(&l->b, flag, one);
}

/* Is the string @r, which was read from @id or from @p, an element of it, NULL? */
static ir_reg is_null(struct lower *l, const struct lvalue *p, struct d_ident *id, ir_reg r)
{
	struct ir_block *empty, *done;
	ir_reg args[2], null;
	struct ir_var *flag;

	if (!p->map) {
		flag = lower_flag(l, id);
		if (!flag)
			return IR_NO_REG;
		null = ir_vld(&l->b, flag);
		return id->space == SPACE_SELF ? ir_op2(&l->b, IR_EQ, null, ir_const(&l->b, 0)) : null;
	}
	args[0] = r;
	args[1] = ir_const(&l->b, 0);
	null = ir_reg_new(&l->b, IR_INT);
	ir_mov(&l->b, null, args[1]);
	empty = ir_block_new(&l->b);
	done = ir_block_new(&l->b);
	ir_br(&l->b, ir_call(&l->b, IR_FN_BYTEAT, args, 2), done, empty);
	ir_at(&l->b, empty);
	ir_mov(&l->b, null, ir_op2(&l->b, IR_EQ, ir_mhas(&l->b, p->map, p->keys), args[1]));
	ir_jmp(&l->b, done);
	ir_at(&l->b, done);
	return null;
}

static void put(struct lower *l, const struct lvalue *p, ir_reg val)
{
	if (p->type && type_is_string(p->type))
		lower_put_string(l, &p->obj, val);
	else if (p->type)
		lower_put(l, &p->obj, p->type, p->bit, p->bits, val);
	else if (p->var)
		ir_vst(&l->b, p->var, val);
	else
		ir_mst(&l->b, p->map, val, p->keys);
}

/* The value of @p after @val was stored; a bit-field keeps only some bits. */
static ir_reg stored(struct lower *l, const struct lvalue *p, ir_reg val)
{
	return p->type && p->bits ? get(l, p) : val;
}

static ir_reg lower_assign(struct lower *l, struct d_node *n)
{
	struct lvalue p;
	ir_reg val;

	lower_lvalue(l, n->lhs, &p);
	if (is_composite(n->lhs->type)) {
		lower_assign_storage(l, &p.obj, n->lhs->type, n->rhs);
		return n->used ? lower_in_memory(l, &p.obj, n->lhs->type) : IR_NO_REG;
	}
	if (type_is_string(n->lhs->type) && !p.type) {
		val = lower_maybe_null(l, n->rhs);
		put_string(l, &p, n->lhs->ident, val, l->null);
		return val;
	}
	val = lower_as(l, n->rhs, n->lhs->type);
	put(l, &p, val);
	l->null = IR_NO_REG;
	return stored(l, &p, val);
}

/*
 * Add @r to @p; returns the value before.  A value that CPUs share is added to atomically, if it has a width for
 * which machines can.  An array's element that is decremented is stored instead, because 0 frees it.
 */
static ir_reg add_to(struct lower *l, const struct lvalue *p, const struct type *t, ir_reg r, bool down)
{
	struct ir_slot s = type_slot(t);
	bool wide = s.width >= 4;
	ir_reg old;

	if (p->type && !down && s.width == 8 && lower_adds(&p->obj, p->bits ? p->bits : 64))
		return keep(l, lower_add(l, &p->obj, p->bit, r), t);
	if (p->var && p->var->cls == IR_GLOBAL && wide)
		return keep(l, ir_vadd(&l->b, p->var, r), t);
	if (p->map && p->map->cls == IR_GLOBAL && wide && !down)
		return keep(l, ir_madd(&l->b, p->map, r, p->keys), t);
	old = get(l, p);
	put(l, p, keep(l, ir_op2(&l->b, IR_ADD, old, r), t));
	return old;
}

/* ++x --x x++ x-- */
static ir_reg lower_inc(struct lower *l, struct d_node *n)
{
	bool down = n->op == D_OP_PREDEC || n->op == D_OP_POSTDEC;
	bool post = n->op == D_OP_POSTINC || n->op == D_OP_POSTDEC;
	const struct type *t = n->type;
	int64_t by = type_is_ptr(t) ? (int64_t)type_size(type_target(t)) : 1;
	struct lvalue p;
	ir_reg step, old;

	lower_lvalue(l, n->base, &p);
	step = ir_const(&l->b, down ? -by : by);
	old = add_to(l, &p, t, step, down);
	return post ? old : stored(l, &p, keep(l, ir_op2(&l->b, IR_ADD, old, step), t));
}

/* --- operators --------------------------------------------------------------------------------------- */

/* @a op @b in the type @t, which both have, except for a shift's @b. */
static ir_reg arith(struct lower *l, enum d_op op, const struct type *t, ir_reg a, ir_reg b)
{
	bool sign = type_is_signed(t);
	enum ir_op o;

	switch (op) {
	case D_OP_ADD:
		o = IR_ADD;
		break;
	case D_OP_SUB:
		o = IR_SUB;
		break;
	case D_OP_MUL:
		o = IR_MUL;
		break;
	case D_OP_DIV:
		o = sign ? IR_SDIV : IR_UDIV;
		break;
	case D_OP_MOD:
		o = sign ? IR_SMOD : IR_UMOD;
		break;
	case D_OP_SHL:
		o = IR_SHL;
		break;
	case D_OP_SHR:
		o = sign ? IR_SAR : IR_SHR;
		break;
	case D_OP_AND:
		return ir_op2(&l->b, IR_AND, a, b);	/* these three cannot leave the range */
	case D_OP_OR:
		return ir_op2(&l->b, IR_OR, a, b);
	default:
		return ir_op2(&l->b, IR_XOR, a, b);
	}
	return keep(l, ir_op2(&l->b, o, a, b), t);
}

/* lhs op= rhs */
static ir_reg lower_op_assign(struct lower *l, struct d_node *n)
{
	const struct type *t = n->lhs->type, *work = t;
	bool ptr = type_is_ptr(t);
	struct lvalue p;
	ir_reg a, b;

	lower_lvalue(l, n->lhs, &p);
	if (ptr) {
		b = lower_expr(l, n->rhs);
		if (node_is_int(n->rhs))
			b = lower_step(l, ir_const(&l->b, 0), t, b, 1);
	} else if (n->op == D_OP_SHL || n->op == D_OP_SHR) {
		work = type_promote(l->check->types, t, 0);
		b = lower_expr(l, n->rhs);
	} else {
		work = type_wider(l->check->types, t, n->rhs->type);
		b = lower_convert(l, lower_expr(l, n->rhs), n->rhs->type, work);
	}
	if (n->op == D_OP_ADD || n->op == D_OP_SUB) {
		if (n->op == D_OP_SUB)
			b = ir_op1(&l->b, IR_NEG, b);
		a = add_to(l, &p, t, b, n->op == D_OP_SUB);
		return stored(l, &p, keep(l, ir_op2(&l->b, IR_ADD, a, b), t));
	}
	a = lower_convert(l, get(l, &p), t, work);
	a = lower_convert(l, arith(l, n->op, work, a, b), work, t);
	put(l, &p, a);
	return stored(l, &p, a);
}

/* s + i: the rest of s from byte i on; nothing behind its end, or before its beginning. */
static ir_reg text_from(struct lower *l, struct d_node *n)
{
	struct d_node *s = check_text_from(n);
	ir_reg args[3], at;

	if (s == n->lhs) {
		args[0] = lower_text(l, s);
		at = lower_expr(l, n->rhs);
	} else {
		at = lower_expr(l, n->lhs);
		args[0] = lower_text(l, s);
	}
	args[1] = ir_op2(&l->b, IR_AND, at, ir_const(&l->b, INT32_MAX));	/* substr() counts negative ones from the end */
	args[2] = ir_const(&l->b, l->prog->strsize);
	return ir_call(&l->b, IR_FN_SUBSTR, args, 3);
}

static ir_reg lower_additive(struct lower *l, struct d_node *n)
{
	bool l_ptr = node_is_ptr(n->lhs), r_ptr = node_is_ptr(n->rhs);
	ir_reg a, b;

	if (check_text_from(n))
		return text_from(l, n);
	if (!l_ptr && !r_ptr) {
		a = lower_as(l, n->lhs, n->type);
		return arith(l, n->op, n->type, a, lower_as(l, n->rhs, n->type));
	}
	a = lower_expr(l, n->lhs);
	b = lower_expr(l, n->rhs);
	if (l_ptr && r_ptr) {
		uint64_t size = type_size(type_target(n->lhs->type));

		a = ir_op2(&l->b, IR_SUB, a, b);
		return size > 1 ? ir_op2(&l->b, IR_SDIV, a, ir_const(&l->b, (int64_t)size)) : a;
	}
	if (l_ptr)
		return lower_step(l, a, n->lhs->type, b, n->op == D_OP_SUB ? -1 : 1);
	return lower_step(l, b, n->rhs->type, a, 1);
}

static ir_reg lower_comparison(struct lower *l, struct d_node *n)
{
	bool sign = true;
	ir_reg a, b, t;

	if (node_is_string(n->lhs) || node_is_string(n->rhs)) {
		a = lower_string(l, n->lhs);
		a = ir_op2(&l->b, IR_STRCMP, a, lower_string(l, n->rhs));
		b = ir_const(&l->b, 0);
	} else if (node_is_int(n->lhs) && node_is_int(n->rhs)) {
		const struct type *work = type_arith(l->check->types, n->lhs->type, n->rhs->type);

		sign = type_is_signed(work);
		a = lower_as(l, n->lhs, work);
		b = lower_as(l, n->rhs, work);
	} else {
		sign = false;
		a = lower_expr(l, n->lhs);
		b = lower_expr(l, n->rhs);
	}
	if (n->op == D_OP_GT || n->op == D_OP_GE) {
		t = a;
		a = b;
		b = t;
	}
	switch (n->op) {
	case D_OP_EQ:
		return ir_op2(&l->b, IR_EQ, a, b);
	case D_OP_NE:
		return ir_op2(&l->b, IR_NE, a, b);
	case D_OP_LT:
	case D_OP_GT:
		return ir_op2(&l->b, sign ? IR_SLT : IR_ULT, a, b);
	default:
		return ir_op2(&l->b, sign ? IR_SLE : IR_ULE, a, b);
	}
}

/* 1 if the scalar @n is @op (NE, EQ) 0, else 0. */
static ir_reg compare_zero(struct lower *l, enum ir_op op, struct d_node *n)
{
	ir_reg v = lower_expr(l, n);

	return ir_op2(&l->b, op, v, ir_const(&l->b, 0));
}

static ir_reg lower_truth(struct lower *l, struct d_node *n)
{
	/* Comparisons return 1 or 0 already. */
	if ((n->kind == D_BINARY && n->op >= D_OP_EQ && n->op <= D_OP_LXOR) ||
	    (n->kind == D_UNARY && n->op == D_OP_LNOT))
		return lower_expr(l, n);
	return compare_zero(l, IR_NE, n);
}

/* && and ||: the right side runs only when the left one does not decide. */
static ir_reg lower_logic(struct lower *l, struct d_node *n)
{
	struct ir_block *more = ir_block_new(&l->b), *done = ir_block_new(&l->b);
	ir_reg res = ir_reg_new(&l->b, IR_INT);

	ir_mov(&l->b, res, lower_truth(l, n->lhs));
	if (n->op == D_OP_LAND)
		ir_br(&l->b, res, more, done);
	else
		ir_br(&l->b, res, done, more);
	ir_at(&l->b, more);
	ir_mov(&l->b, res, lower_truth(l, n->rhs));
	ir_jmp(&l->b, done);
	ir_at(&l->b, done);
	return res;
}

static ir_reg lower_cond(struct lower *l, struct d_node *n, bool ask)
{
	struct ir_block *yes = ir_block_new(&l->b), *no = ir_block_new(&l->b), *done = ir_block_new(&l->b);
	bool has_value = !type_is_void(n->type);
	ir_reg res = IR_NO_REG, null = IR_NO_REG, v;

	if (has_value)
		res = ir_reg_new(&l->b, type_slot(n->type).type);
	if (ask)
		null = ir_reg_new(&l->b, IR_INT);
	v = lower_expr(l, n->cond);
	ir_br(&l->b, v, yes, no);
	for (int i = 0; i < 2; i++) {
		ir_at(&l->b, i == 0 ? yes : no);
		v = ask ? lower_maybe_null(l, i == 0 ? n->lhs : n->rhs) : lower_as(l, i == 0 ? n->lhs : n->rhs, n->type);
		if (has_value)
			ir_mov(&l->b, res, v);
		if (ask)
			ir_mov(&l->b, null, l->null == IR_NO_REG ? ir_const(&l->b, 0) : l->null);
		ir_jmp(&l->b, done);
	}
	ir_at(&l->b, done);
	l->null = null;
	return res;
}

static ir_reg lower_binary(struct lower *l, struct d_node *n, bool ask)
{
	ir_reg a;

	switch (n->op) {
	case D_OP_ADD:
	case D_OP_SUB:
		return lower_additive(l, n);
	case D_OP_SHL:
	case D_OP_SHR:
		a = lower_as(l, n->lhs, n->type);
		return arith(l, n->op, n->type, a, lower_expr(l, n->rhs));
	case D_OP_MUL:
	case D_OP_DIV:
	case D_OP_MOD:
	case D_OP_AND:
	case D_OP_OR:
	case D_OP_XOR:
		a = lower_as(l, n->lhs, n->type);
		return arith(l, n->op, n->type, a, lower_as(l, n->rhs, n->type));
	case D_OP_LAND:
	case D_OP_LOR:
		return lower_logic(l, n);
	case D_OP_LXOR:
		a = lower_truth(l, n->lhs);
		return ir_op2(&l->b, IR_NE, a, lower_truth(l, n->rhs));
	case D_OP_COMMA:
		lower_expr(l, n->lhs);
		return ask ? lower_maybe_null(l, n->rhs) : lower_expr(l, n->rhs);
	default:
		return lower_comparison(l, n);
	}
}

/* s[at] of a string; 0 behind its end. */
static ir_reg char_of(struct lower *l, struct d_node *n, ir_reg at)
{
	const ir_reg args[] = { lower_text(l, n->base), at };

	return keep(l, ir_call(&l->b, IR_FN_BYTEAT, args, 2), n->type);
}

static ir_reg lower_unary(struct lower *l, struct d_node *n)
{
	switch (n->op) {
	case D_OP_DEREF:
		if (check_is_char_of(n))
			return char_of(l, n, ir_const(&l->b, 0));
		return lower_load(l, n);
	case D_OP_ADDR:
		return lower_addr(l, n->base);
	case D_OP_LNOT:
		return compare_zero(l, IR_EQ, n->base);
	case D_OP_NOT:
		return keep(l, ir_op1(&l->b, IR_NOT, lower_as(l, n->base, n->type)), n->type);
	case D_OP_NEG:
		return keep(l, ir_op1(&l->b, IR_NEG, lower_as(l, n->base, n->type)), n->type);
	case D_OP_PLUS:
		return lower_as(l, n->base, n->type);
	default:
		return lower_inc(l, n);
	}
}

/* --- names and calls --------------------------------------------------------------------------------- */

static ir_reg lower_inline(struct lower *l, struct d_node *n, bool ask)
{
	struct d_ident *id = n->ident;
	struct d_node *saved[IR_MAX_KEYS];
	ir_reg r;

	if (++l->depth > LOWER_MAX_DEPTH && l->nodes <= LOWER_MAX_NODES) {
		l->nodes = LOWER_MAX_NODES + 1;
		l->endless = n->pos;
	}
	/* Bind the arguments to the parameters; an inline may be used in its own arguments. */
	for (size_t i = 0; i < id->inl->params.n; i++) {
		saved[i] = id->params[i]->arg;
		id->params[i]->arg = n->args[i];
	}
	r = ask ? lower_maybe_null(l, id->inl->expr) : lower_as(l, id->inl->expr, id->type);
	for (size_t i = 0; i < id->inl->params.n; i++)
		id->params[i]->arg = saved[i];
	l->depth--;
	return r;
}

/* Lower a member of a translated object, with the parameters of the inline that the object came from. */
static ir_reg lower_xlated(struct lower *l, struct d_node *n, bool ask)
{
	const struct d_node *outer = n->aux;
	struct d_node *saved[IR_MAX_KEYS];
	ir_reg r;

	for (size_t i = 0; outer && i < outer->nargs; i++) {
		saved[i] = outer->ident->params[i]->arg;
		outer->ident->params[i]->arg = outer->args[i];
	}
	r = lower_inline(l, n, ask);
	for (size_t i = 0; outer && i < outer->nargs; i++)
		outer->ident->params[i]->arg = saved[i];
	return r;
}

static ir_reg lower_name(struct lower *l, struct d_node *n, bool ask)
{
	struct d_ident *id = n->ident;
	struct lvalue p;
	ir_reg r;

	switch (id->kind) {
	case ID_BUILTIN:
		if (id->builtin->source == BUILTIN_ARG)
			return ir_arg(&l->b, id->builtin->number);
		if (id->builtin->source == BUILTIN_CALL)
			return ir_call(&l->b, (enum ir_fn)id->builtin->number, NULL, 0);
		return ir_builtin(&l->b, (enum ir_builtin)id->builtin->number);
	case ID_INLINE:
		return lower_inline(l, n, ask);
	case ID_PARAM:
		return ask ? lower_maybe_null(l, id->arg) : lower_as(l, id->arg, id->type);
	default:
		if (is_composite(n->type)) {
			struct storage o;

			lower_storage(l, n, &o);
			return lower_in_memory(l, &o, n->type);
		}
		r = ir_vld(&l->b, lower_var(l, id));
		p.map = NULL;
		if (ask)
			l->null = is_null(l, &p, id, r);
		return r;
	}
}

static ir_reg lower_index(struct lower *l, struct d_node *n, bool ask)
{
	struct d_ident *id = n->ident;
	struct lvalue p;
	ir_reg r;

	if (check_is_char_of(n))
		return char_of(l, n, lower_as(l, n->args[0], l->check->t_int64));
	if (!id)
		return lower_load(l, n);
	switch (id->kind) {
	case ID_INLINE:
		return lower_inline(l, n, ask);
	case ID_BUILTIN:	/* args[n], uregs[n] */
		if (id->builtin->source == BUILTIN_UREGS) {
			const ir_reg off = ir_const(&l->b, (int64_t)n->value);

			return ir_call(&l->b, IR_FN_UREG, &off, 1);
		}
		r = ir_arg(&l->b, (unsigned int)n->value);
		if (type_is_string(n->type))
			return lower_string_at(l, r, true);
		return lower_convert(l, r, l->check->t_int64, n->type);
	default:
		lower_lvalue(l, n, &p);
		if (is_composite(n->type))
			return lower_in_memory(l, &p.obj, n->type);
		r = get(l, &p);
		l->null = ask && !p.type ? is_null(l, &p, id, r) : IR_NO_REG;
		return r;
	}
}

/* The address of the bytes of a string, a copy of them. */
static ir_reg string_bytes(struct lower *l, struct d_node *n)
{
	ir_reg size = ir_const(&l->b, (int64_t)l->prog->strsize), put[2] = { ir_call(&l->b, IR_FN_ALLOCA, &size, 1) };

	put[1] = lower_string(l, n);
	ir_call(&l->b, IR_FN_POKESTR, put, 2);
	return put[0];
}

static ir_reg lower_call(struct lower *l, struct d_node *n, bool ask)
{
	const struct d_ident *id = n->ident;
	const struct proto *p = id->proto;
	ir_reg args[PROTO_MAX], found[2];
	int64_t left_out, v;

	assert(id->kind == ID_SUBR);
	for (unsigned int i = 0; i < p->nargs; i++) {
		if (i >= n->nargs) {
			left_out = id->subr->left_out;
			args[i] = ir_const(&l->b, left_out == SUBR_STRSIZE ? (int64_t)l->prog->strsize : left_out);
		} else if (p->others[i] && type_is_ptr(p->args[i])) {
			args[i] = type_is_string(n->args[i]->type) ? string_bytes(l, n->args[i]) :
								     lower_as(l, n->args[i], p->args[i]);
		} else if (type_is_char_ptr(p->args[i]) || (p->others[i] && !type_is_integer(n->args[i]->type))) {
			args[i] = !strcmp(id->name, "strtok") ? lower_string(l, n->args[i]) : lower_text(l, n->args[i]);
		} else if (type_is_integer(p->args[i]) && type_size(p->args[i]) == 8 &&
			   d_const(l->check->prog, n->args[i], &v)) {
			args[i] = ir_const(&l->b, v);	/* a constant, 2 * sizeof (int), limits the call's memory */
		} else {
			args[i] = lower_as(l, n->args[i], p->args[i]);
		}
	}
	found[0] = id->subr->fn == SUBR_LOWERED ? lower_subr(l, n, args) :
						  ir_call(&l->b, (enum ir_fn)id->subr->fn, args, p->nargs);
	l->null = IR_NO_REG;
	if (ask && id->subr->left_out == SUBR_FINDS) {
		found[1] = ir_const(&l->b, 0);
		l->null = ir_op2(&l->b, IR_EQ, ir_call(&l->b, IR_FN_BYTEAT, found, 2), found[1]);
	}
	return found[0];
}

static ir_reg lower_cast(struct lower *l, struct d_node *n, bool ask)
{
	if (type_is_string(n->ctype))
		return ask ? lower_maybe_null(l, n->base) : lower_string(l, n->base);
	if (type_is_void(n->ctype)) {
		lower_expr(l, n->base);
		return IR_NO_REG;
	}
	return type_is_scalar(n->ctype) ? lower_as(l, n->base, n->ctype) : lower_expr(l, n->base);
}

ir_reg lower_expr(struct lower *l, struct d_node *n)
{
	struct src_pos saved = l->b.pos;
	bool ask = l->ask_null;
	ir_reg r;

	l->ask_null = false;
	if (l->nodes == LOWER_MAX_NODES)
		l->endless = n->pos;
	if (++l->nodes > LOWER_MAX_NODES)	/* inlines of inlines grow without bound */
		return type_is_void(n->type) ? IR_NO_REG : type_is_string(n->type) ? ir_strc(&l->b, "") :
		       ir_const(&l->b, 1);
	l->b.pos = n->pos;
	switch (n->kind) {
	case D_INT:
		r = ir_const(&l->b, (int64_t)n->value);
		break;
	case D_STR:
		r = ir_strc(&l->b, n->str);
		break;
	case D_NAME:
		r = lower_name(l, n, ask);
		break;
	case D_INDEX:
		r = lower_index(l, n, ask);
		break;
	case D_CALL:
		r = n->ident->kind == ID_ACTION ? lower_action_value(l, n) : lower_call(l, n, ask);
		break;
	case D_MEMBER:
		r = n->ident ? lower_xlated(l, n, ask) : lower_load(l, n);
		if (!n->ident)
			l->null = IR_NO_REG;
		break;
	case D_XLATE:		/* without a member: the input */
		r = lower_expr(l, n->base);
		break;
	case D_UNARY:
		r = lower_unary(l, n);
		l->null = IR_NO_REG;
		break;
	case D_BINARY:
		r = lower_binary(l, n, ask);
		break;
	case D_ASSIGN:
		r = n->op == D_OP_NONE ? lower_assign(l, n) : lower_op_assign(l, n);
		break;
	case D_COND:
		r = lower_cond(l, n, ask);
		break;
	case D_CAST:
		r = lower_cast(l, n, ask);
		break;
	case D_STRINGOF:
		r = ask ? lower_maybe_null(l, n->base) : lower_string(l, n->base);
		break;
	default:		/* sizeof, offsetof: constants */
		r = ir_const(&l->b, (int64_t)n->value);
	}
	l->b.pos = saved;
	return r;
}
