#include "eval.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void eval_init(struct eval *e, const struct ir_prog *p)
{
	memset(e, 0, sizeof(*e));
	e->prog = p;
	for (uint32_t i = 0; i < p->nvars && i < EVAL_MAX; i++)
		e->vars[i].type = p->vars[i]->slot.type;
}

static int64_t extend(int64_t v, unsigned int width, bool sign)
{
	unsigned int shift = 64 - 8 * width;

	if (width >= 8)
		return v;
	return sign ? (int64_t)((uint64_t)v << shift) >> shift : (int64_t)((uint64_t)v << shift >> shift);
}

static int64_t load(int64_t addr, unsigned int width, bool sign)
{
	int64_t v = 0;

	memcpy(&v, (const void *)(uintptr_t)addr, width);
	return extend(v, width, sign);
}

static void set_str(struct eval_value *v, const char *s)
{
	v->type = IR_STR;
	snprintf(v->s, sizeof(v->s), "%.*s", EVAL_STR - 1, s);
}

static bool same(const struct eval_value *a, const struct eval_value *b)
{
	return a->type == b->type && (a->type == IR_STR ? strcmp(a->s, b->s) == 0 : a->i == b->i);
}

/* The element of @m under @keys, or NULL. */
static struct eval_value *find(struct eval *e, const struct ir_map *m, const struct eval_value *keys)
{
	struct eval_element *el;
	uint32_t k;

	for (unsigned int i = 0; i < e->nelements; i++) {
		el = &e->elements[i];
		for (k = 0; el->map == m && k < m->nkeys && same(&el->keys[k], &keys[k]); k++)
			;
		if (el->map == m && k == m->nkeys)
			return &el->value;
	}
	return NULL;
}

/* The same, made when there is none. */
static struct eval_value *element(struct eval *e, const struct ir_map *m, const struct eval_value *keys)
{
	struct eval_element *el;

	if (find(e, m, keys))
		return find(e, m, keys);
	if (e->nelements == EVAL_MAX)
		abort();
	el = &e->elements[e->nelements++];
	el->map = m;
	memcpy(el->keys, keys, m->nkeys * sizeof(*keys));
	el->value = (struct eval_value){ .type = m->value.type };
	return &el->value;
}

static struct eval_value kept(const struct ir_slot *slot, const struct eval_value *v)
{
	struct eval_value r = *v;

	if (r.type == IR_INT)
		r.i = extend(r.i, slot->width, slot->sign);
	return r;
}

static void call(const struct ir_insn *i, const struct eval_value *a, struct eval_value *r)
{
	char joined[2 * EVAL_STR];

	switch (i->fn) {
	case IR_FN_COPYIN:
		*r = (struct eval_value){ .type = IR_INT, .i = a[0].i };
		break;
	case IR_FN_POKE:
		memcpy((void *)(uintptr_t)a[0].i, &a[1].i, (size_t)a[2].i);
		*r = (struct eval_value){ .type = IR_INT };
		break;
	case IR_FN_COPYINSTR:
	case IR_FN_STRINGOF:
		set_str(r, (const char *)(uintptr_t)a[0].i);
		break;
	case IR_FN_STRLEN:
		*r = (struct eval_value){ .type = IR_INT, .i = (int64_t)strlen(a[0].s) };
		break;
	case IR_FN_BYTEAT:
		*r = (struct eval_value){ .type = IR_INT };
		if (a[1].i >= 0 && a[1].i < (int64_t)strlen(a[0].s))
			r->i = (unsigned char)a[0].s[a[1].i];
		break;
	case IR_FN_STRJOIN:
		snprintf(joined, sizeof(joined), "%s%s", a[0].s, a[1].s);
		set_str(r, joined);
		break;
	default:
		fprintf(stderr, "eval.c has no %s\n", ir_fn_text(i->fn));
		abort();
	}
}

static int64_t binary(struct eval *e, enum ir_op op, int64_t a, int64_t b)
{
	uint64_t x = (uint64_t)a, y = (uint64_t)b;

	switch (op) {
	case IR_ADD:	return (int64_t)(x + y);
	case IR_SUB:	return (int64_t)(x - y);
	case IR_MUL:	return (int64_t)(x * y);
	case IR_SDIV:
	case IR_SMOD:
	case IR_UDIV:
	case IR_UMOD:
		if (!y) {
			e->faulted = true;
			return 0;
		}
		if (op == IR_UDIV)
			return (int64_t)(x / y);
		if (op == IR_UMOD)
			return (int64_t)(x % y);
		if (b == -1)
			return op == IR_SDIV ? (int64_t)-x : 0;
		return op == IR_SDIV ? a / b : a % b;
	case IR_AND:	return a & b;
	case IR_OR:	return a | b;
	case IR_XOR:	return a ^ b;
	case IR_SHL:	return (int64_t)(x << (y & 63));
	case IR_SHR:	return (int64_t)(x >> (y & 63));
	case IR_SAR:	return a >> (y & 63);
	case IR_EQ:	return a == b;
	case IR_NE:	return a != b;
	case IR_SLT:	return a < b;
	case IR_SLE:	return a <= b;
	case IR_ULT:	return x < y;
	case IR_ULE:	return x <= y;
	default:	abort();
	}
}

/* One instruction that does not end a block. */
static void step(struct eval *e, const struct ir_insn *i, const struct eval_value *a, struct eval_value *r)
{
	struct eval_value *v;
	int64_t old;

	r->type = IR_INT;
	switch (i->op) {
	case IR_CONST:
		r->i = i->imm;
		break;
	case IR_STRC:
		set_str(r, i->str);
		break;
	case IR_MOV:
		*r = a[0];
		break;
	case IR_NEG:
		r->i = (int64_t)-(uint64_t)a[0].i;
		break;
	case IR_NOT:
		r->i = ~a[0].i;
		break;
	case IR_EXT:
		r->i = extend(a[0].i, i->width, i->sign);
		break;
	case IR_STRCMP:
		r->i = strcmp(a[0].s, a[1].s);
		break;
	case IR_BUILTIN:
		if (ir_builtin_type(i->bi) == IR_STR)
			set_str(r, ir_builtin_text(i->bi));	/* execname is "execname" */
		else
			r->i = 1000 + (int64_t)i->bi;
		break;
	case IR_ARG:
		r->i = i->imm < 10 ? e->args[i->imm] : 0;
		break;
	case IR_CALL:
		call(i, a, r);
		break;
	case IR_ULOAD:
	case IR_UPEEK:
		e->user_loads++;
		/* fall through */
	case IR_LOAD:
		r->i = load(a[0].i, i->width, i->sign);
		break;
	case IR_VLD:
		*r = e->vars[i->var->id];
		break;
	case IR_VST:
		e->vars[i->var->id] = kept(&i->var->slot, &a[0]);
		break;
	case IR_VADD:
		v = &e->vars[i->var->id];
		r->i = v->i;
		v->i = extend((int64_t)((uint64_t)v->i + (uint64_t)a[0].i), i->var->slot.width, i->var->slot.sign);
		break;
	case IR_MLD:
		v = find(e, i->map, a);
		*r = v ? *v : (struct eval_value){ .type = i->map->value.type };
		break;
	case IR_MST:
		*element(e, i->map, a + 1) = kept(&i->map->value, &a[0]);
		break;
	case IR_MHAS:
		r->i = find(e, i->map, a) != NULL;
		break;
	case IR_MADD:
		v = element(e, i->map, a + 1);
		old = v->i;
		v->i = extend((int64_t)((uint64_t)old + (uint64_t)a[0].i), i->map->value.width, i->map->value.sign);
		r->i = old;
		break;
	case IR_AGG:
		e->agg = i->agg;
		memcpy(e->agg_args, a, i->nargs * sizeof(*a));
		break;
	case IR_EMIT:
		e->rec = i->rec;
		for (uint32_t k = 0; k < i->nargs; k++)
			e->fields[k] = kept(&i->rec->fields[k], &a[k]);
		break;
	case IR_EXITING:
		e->exiting = true;
		break;
	default:
		r->i = binary(e, i->op, a[0].i, a[1].i);
	}
}

void eval_run(struct eval *e, const struct ir_clause *c)
{
	struct eval_value *regs = calloc(c->nregs + 1, sizeof(*regs)), args[EVAL_MAX];
	const struct ir_block *b = c->blocks[0];

	e->rec = NULL;
	e->agg = NULL;
	e->exiting = e->faulted = false;
	e->user_loads = 0;
	for (uint32_t k = 0; !e->faulted; k++) {
		const struct ir_insn *i = &b->insns[k];
		struct eval_value r = { 0 };

		if (k >= b->n || i->nargs > EVAL_MAX)
			abort();
		for (uint32_t n = 0; n < i->nargs; n++)
			args[n] = regs[i->args[n]];
		if (i->op == IR_RET || i->op == IR_FAULT) {
			e->faulted = i->op == IR_FAULT;
			break;
		}
		if (i->op == IR_JMP || i->op == IR_BR) {
			b = i->op == IR_JMP || args[0].i ? i->target[0] : i->target[1];
			k = UINT32_MAX;		/* the next one is 0 */
			continue;
		}
		step(e, i, args, &r);
		if (i->dst != IR_NO_REG)
			regs[i->dst] = r;
	}
	free(regs);
}
