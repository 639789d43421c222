#include "d/check.h"

#include <string.h>

#include "d/parse.h"

const struct type check_agg_type = { .kind = TYPE_VOID, .name = "aggregation", .align = 1 };

bool node_is_agg(const struct d_node *n)
{
	return n->type == &check_agg_type;
}

bool node_is_int(const struct d_node *n)
{
	return type_is_integer(n->type);
}

bool node_is_string(const struct d_node *n)
{
	return type_is_string(n->type);
}

bool node_is_ptr(const struct d_node *n)
{
	return type_is_ptr(n->type) || type_is_array(n->type);
}

bool node_is_scalar(const struct d_node *n)
{
	return type_is_scalar(n->type);
}

bool node_is_action(const struct d_node *n)
{
	return n->kind == D_CALL && n->ident && n->ident->kind != ID_SUBR;
}

bool node_is_zero(const struct check *c, const struct d_node *n)
{
	int64_t v;

	return type_is_integer(n->type) && d_const(c->prog, n, &v) && v == 0;
}

bool type_is_str_like(const struct type *t)
{
	return type_is_string(t) || type_is_char_array(t) || type_is_char_ptr(t);
}

bool type_is_blind_ptr(const struct type *t)
{
	const struct type *to;

	if (!type_is_ptr(t))
		return false;
	to = type_strip(type_target(t));
	return to->kind == TYPE_VOID || to->kind == TYPE_FUNC;
}

bool type_ptr_compat(const struct check *c, const struct d_node *a, const struct d_node *b, const struct type **ret)
{
	bool a_ptr = node_is_ptr(a) || node_is_string(a), b_ptr = node_is_ptr(b) || node_is_string(b);
	const struct type *to_a, *to_b;

	if ((!a_ptr && !node_is_zero(c, a)) || (!b_ptr && !node_is_zero(c, b)) || (!a_ptr && !b_ptr))
		return false;
	if (!a_ptr || !b_ptr) {
		*ret = a_ptr ? a->type : b->type;
		return true;
	}
	if (a->user != b->user || node_is_string(a) || node_is_string(b))
		return false;
	to_a = type_target(a->type);
	to_b = type_target(b->type);
	*ret = type_is_void(to_b) ? a->type : b->type;
	return type_is_void(to_a) || type_is_void(to_b) || type_same(to_a, to_b);
}

bool type_takes(const struct check *c, const struct type *to, bool user, const struct d_node *n)
{
	const struct d_node want = { .kind = D_NAME, .type = to, .user = user };
	const struct type *ignored;

	if (node_is_agg(n))
		return false;
	if (type_is_integer(to) && type_is_integer(n->type))
		return true;
	if (type_is_string(to) && type_is_str_like(n->type))
		return true;
	if (node_is_string(n))	/* has no lasting address */
		return false;
	if (type_is_sou(to) || type_is_float(to))
		return type_same(to, n->type);
	return type_ptr_compat(c, &want, n, &ignored);
}

bool type_is_storable(const struct type *t)
{
	return (type_is_scalar(t) || type_is_string(t)) && type_is_complete(t);
}

struct ir_slot type_slot(const struct type *t)
{
	static const struct {
		const char *name;
		enum ir_show show;
	} shown[] = {
		{ "_stack", IR_SHOW_STACK }, { "_addr", IR_SHOW_ADDR }, { "_sym", IR_SHOW_SYM }, { "_mod", IR_SHOW_MOD },
	};

	if (type_is_string(t))
		return (struct ir_slot){ .type = IR_STR };
	for (size_t i = 0; t->kind == TYPE_TYPEDEF && t->name[0] == '_' && i < sizeof(shown) / sizeof(shown[0]); i++)
		if (strcmp(t->name, shown[i].name) == 0)
			return (struct ir_slot){ IR_INT, 8, false, shown[i].show };
	if (type_is_integer(t))
		return (struct ir_slot){ IR_INT, (uint8_t)type_size(t), type_is_signed(t) };
	return (struct ir_slot){ IR_INT, 8, false };
}
