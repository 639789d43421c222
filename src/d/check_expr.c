#include "d/check.h"

#include <string.h>

#include "base/arena.h"
#include "d/parse.h"

static void incompatible(struct check *c, const struct d_node *n, const char *op)
{
	check_error(c, n->pos, "D_OP_INCOMPAT", "operands have incompatible types: \"%s\" %s \"%s\"",
		    check_text(c, n->lhs), op, check_text(c, n->rhs));
	if (type_is_string(n->lhs->type) != type_is_string(n->rhs->type) &&
	    (type_is_integer(n->lhs->type) || type_is_integer(n->rhs->type)))
		diag_hint(c->diag, "lltostr() makes a string of a number, copyinstr() one of an address");
}

static const char *wrong(const struct d_node *n)
{
	return d_op_text(n->op);
}

/* Check both operands; true if both have types. */
static bool check_operands(struct check *c, struct d_node *n)
{
	bool l = check_expr(c, n->lhs) != NULL;

	return check_expr(c, n->rhs) && l;
}

static const struct type *check_division(struct check *c, struct d_node *n, const struct type *t)
{
	int64_t v;

	if (d_const(c->prog, n->rhs, &v) && v == 0) {
		check_error(c, n->pos, "D_DIV_ZERO", "expression contains division by zero");
		return NULL;
	}
	return t;
}

/*
 * The array @n as a pointer to its first element: &n[0], if it is (in) a variable, whose elements have one address each.
 * Arrays of char are texts, and stay.
 */
static struct d_node *as_pointer(struct check *c, struct d_node *n)
{
	struct d_node *zero, *first, *addr;

	if (!type_is_array(n->type) || type_is_char_array(n->type) || !check_root(n))
		return n;
	zero = arena_new_of(c->arena, struct d_node);
	first = arena_new_of(c->arena, struct d_node);
	addr = arena_new_of(c->arena, struct d_node);
	*zero = (struct d_node){ .kind = D_INT, .pos = n->pos, .type = c->t_int };
	*first = (struct d_node){ .kind = D_INDEX, .pos = n->pos, .base = n, .nargs = 1, .depth = n->depth };
	first->args = arena_alloc(c->arena, sizeof(*first->args));
	first->args[0] = zero;
	*addr = (struct d_node){ .kind = D_UNARY, .op = D_OP_ADDR, .pos = n->pos, .base = first, .depth = n->depth };
	return check_expr(c, addr) ? addr : n;
}

struct d_node *check_text_from(const struct d_node *n)
{
	const struct d_node *l = n->lhs, *r = n->rhs;

	if (n->kind != D_BINARY || n->op != D_OP_ADD)
		return NULL;
	if (node_is_string(l) && !node_is_ptr(l) && node_is_int(r))
		return n->lhs;
	return node_is_int(l) && node_is_string(r) && !node_is_ptr(r) ? n->rhs : NULL;
}

/* lhs + rhs, lhs - rhs: a string and an integer, integers, a pointer and an integer, the difference of two pointers. */
static const struct type *check_additive(struct check *c, struct d_node *n)
{
	bool l_ptr = node_is_ptr(n->lhs) && !type_is_blind_ptr(n->lhs->type);
	bool r_ptr = node_is_ptr(n->rhs) && !type_is_blind_ptr(n->rhs->type);
	const struct type *t;

	if (node_is_int(n->lhs) && node_is_int(n->rhs))
		return type_wider(c->types, n->lhs->type, n->rhs->type);
	if (check_text_from(n))
		return c->t_string;
	if ((l_ptr && !check_not_xlated(c, n->lhs, "arithmetic")) || (r_ptr && !check_not_xlated(c, n->rhs, "arithmetic")))
		return NULL;
	if (l_ptr && node_is_int(n->rhs)) {
		n->user = n->lhs->user;
		return type_is_array(n->lhs->type) ? type_ptr(c->types, type_target(n->lhs->type)) : n->lhs->type;
	}
	if (node_is_int(n->lhs) && r_ptr && n->op == D_OP_ADD) {
		n->user = n->rhs->user;
		return type_is_array(n->rhs->type) ? type_ptr(c->types, type_target(n->rhs->type)) : n->rhs->type;
	}
	if (l_ptr && r_ptr && n->op == D_OP_SUB && type_ptr_compat(c, n->lhs, n->rhs, &t)) {
		n->lhs = as_pointer(c, n->lhs);
		n->rhs = as_pointer(c, n->rhs);
		return type_basic(c->types, TYPE_B_LONG);
	}
	incompatible(c, n, d_op_text(n->op));
	if (node_is_string(n->lhs) && node_is_string(n->rhs))
		diag_hint(c->diag, "strjoin() joins strings");
	else if (type_is_blind_ptr(n->lhs->type) || type_is_blind_ptr(n->rhs->type))
		diag_hint(c->diag, "cast the pointer to one of a type with a size, as (char *)");
	return NULL;
}

static const struct type *check_comparison(struct check *c, struct d_node *n)
{
	struct d_node *l = n->lhs, *r = n->rhs;
	const struct type *t;

	if (node_is_int(l) && node_is_int(r))
		return c->t_int;
	if (type_is_str_like(l->type) && type_is_str_like(r->type) && (node_is_string(l) || node_is_string(r)))
		return c->t_int;
	if (type_ptr_compat(c, l, r, &t)) {
		n->lhs = as_pointer(c, l);
		n->rhs = as_pointer(c, r);
		return c->t_int;
	}
	incompatible(c, n, d_op_text(n->op));
	return NULL;
}

static const struct type *check_binary(struct check *c, struct d_node *n)
{
	const struct type *type;
	uint64_t value;

	if (!check_operands(c, n))
		return NULL;
	switch (n->op) {
	case D_OP_AND:
	case D_OP_OR:
	case D_OP_XOR:
	case D_OP_MOD:
	case D_OP_SHL:
	case D_OP_SHR:
		if (!node_is_int(n->lhs) || !node_is_int(n->rhs)) {
			check_error(c, n->pos, "D_OP_INT", "operator %s requires operands of integral type", wrong(n));
			return NULL;
		}
		if (n->op == D_OP_SHL || n->op == D_OP_SHR) {
			if (const_value(c->prog, n, &value, &type))	/* 1 << 63 is a long */
				return type;
			return type_promote(c->types, n->lhs->type, 0);
		}
		if (n->op == D_OP_MOD)
			return check_division(c, n, type_wider(c->types, n->lhs->type, n->rhs->type));
		return type_wider(c->types, n->lhs->type, n->rhs->type);
	case D_OP_MUL:
	case D_OP_DIV:
		if (!node_is_int(n->lhs) || !node_is_int(n->rhs)) {
			check_error(c, n->pos, "D_OP_ARITH", "operator %s requires operands of arithmetic type",
				    wrong(n));
			return NULL;
		}
		if (n->op == D_OP_DIV)
			return check_division(c, n, type_wider(c->types, n->lhs->type, n->rhs->type));
		return type_wider(c->types, n->lhs->type, n->rhs->type);
	case D_OP_LAND:
	case D_OP_LOR:
	case D_OP_LXOR:
		if (!node_is_scalar(n->lhs) || !node_is_scalar(n->rhs)) {
			check_error(c, n->pos, "D_OP_SCALAR", "operator %s requires operands of scalar type", wrong(n));
			if (node_is_string(n->lhs) || node_is_string(n->rhs))
				diag_hint(c->diag, "compare the string: s != \"\"");
			return NULL;
		}
		return c->t_int;
	case D_OP_ADD:
	case D_OP_SUB:
		return check_additive(c, n);
	case D_OP_COMMA:
		if (node_is_action(n->lhs) || node_is_action(n->rhs)) {
			check_error(c, n->pos, "D_OP_ACT", "operator , operands cannot be actions");
			diag_hint(c->diag, "separate actions by ;");
			return NULL;
		}
		if (node_is_agg(n->lhs) || node_is_agg(n->rhs)) {
			check_error(c, n->pos, "D_OP_DYN", "operator , operands cannot be of dynamic type");
			return NULL;
		}
		n->user = n->rhs->user;
		return n->rhs->type;
	default:
		return check_comparison(c, n);
	}
}

/* --- lvalues ----------------------------------------------------------------------------------------- */

bool check_is_char_of(const struct d_node *n)
{
	if (n->kind != D_INDEX && (n->kind != D_UNARY || n->op != D_OP_DEREF))
		return false;
	return !n->ident && n->base->type && node_is_string(n->base) && !node_is_ptr(n->base);
}

static bool is_lvalue(const struct d_node *n)
{
	if (check_is_char_of(n))
		return false;
	switch (n->kind) {
	case D_NAME:
		return n->ident && n->ident->kind != ID_PARAM;
	case D_INDEX:
		return true;
	case D_MEMBER:
		return n->arrow || is_lvalue(n->base);
	case D_UNARY:
		return n->op == D_OP_DEREF;
	default:
		return false;
	}
}

struct d_node *check_root(struct d_node *n)
{
	switch (n->kind) {
	case D_NAME:
		return n->ident && n->ident->kind == ID_SCALAR ? n : NULL;
	case D_INDEX:
		if (n->ident)
			return n->ident->kind == ID_ARRAY ? n : NULL;
		return n->base->type && type_is_array(n->base->type) ? check_root(n->base) : NULL;
	case D_MEMBER:
		return n->arrow || n->ident ? NULL : check_root(n->base);
	default:
		return NULL;
	}
}

static bool is_variable(const struct d_node *n)
{
	return check_root((struct d_node *)(uintptr_t)n);
}

/* Check the target of an assignment, ++ or --.  Returns its type; NULL also for a variable that has no type yet. */
static const struct type *check_target(struct check *c, struct d_node *n, enum use use)
{
	if (n->kind != D_NAME && !check_is_array_ref(c, n))
		return check_expr(c, n);
	n->type = NULL;
	n->ident = NULL;
	return n->kind == D_NAME ? check_name(c, n, use) : check_array(c, n, use);
}

/*
 * Is @n a variable, or what a variable or a cast points to?  DTrace allows no other target.  Whether such memory is
 * the clause's own is checked at run time.
 */
static bool is_writable(const struct d_node *n)
{
	if (is_variable(n))
		return true;
	switch (n->kind) {
	case D_CAST:
		return type_is_ptr(n->type);
	case D_UNARY:
	case D_INDEX:
	case D_MEMBER:
		return !n->ident && is_writable(n->base);
	case D_BINARY:
		return is_writable(node_is_ptr(n->lhs) ? n->lhs : n->rhs);
	case D_ASSIGN:
		return is_writable(n->lhs);
	case D_COND:
		return is_writable(n->lhs) && is_writable(n->rhs);
	default:
		return false;
	}
}

static bool check_writable(struct check *c, const struct d_node *n, const char *op)
{
	if (!is_lvalue(n)) {
		check_error(c, n->pos, "D_OP_LVAL", "operator %s requires modifiable lvalue as an operand", op);
		return false;
	}
	if (!is_writable(n) || (n->user && !is_variable(n))) {
		check_error(c, n->pos, "D_OP_WRITE", "operator %s can only be applied to a writable variable", op);
		if (n->user)
			diag_hint(c->diag, "the traced process is not written to");
		return false;
	}
	return true;
}

/* Set @id's type to that of the first value assigned to it. */
static bool type_variable(struct check *c, struct d_ident *id, const struct d_node *target, const struct d_node *val)
{
	const struct type *t = val->type;

	if (type_is_sou(t)) {
		id->type = t;
		id->user = val->user;
		return check_storage(c, target->pos, id->space, t);
	}
	if (type_is_char_array(t)) {
		t = c->t_string;
	} else if (type_is_array(t)) {
		check_error(c, target->pos, "D_OP_ARRFUN", "operator = may not be applied to operand of type \"%s\"",
			    check_text(c, val));
		return false;
	}
	if (!type_is_storable(t)) {
		check_error(c, target->pos, "D_OP_INCOMPAT", "operands have incompatible types: \"%s\" = \"%s\"",
			    ident_kind_text(id->kind), check_text(c, val));
		if (val->kind == D_CALL && val->ident && val->ident->kind == ID_AGGFUNC)
			diag_hint(c->diag, "%s() is for aggregations: @%s = %s()", val->ident->name, id->name,
				  val->ident->name);
		return false;
	}
	id->type = t;
	id->user = val->user && !type_is_string(t);
	return true;
}

/* May the string @n be NULL, for a variable that it is assigned to (lower_expr.c)? */
static bool may_be_null(const struct check *c, const struct d_node *n)
{
	const struct d_ident *id = n->ident;
	int64_t v;

	switch (n->kind) {
	case D_NAME:
	case D_INDEX:
		return id && type_is_string(n->type) &&
		       (id->nullable || id->kind == ID_ARRAY || (id->kind == ID_SCALAR && id->space == SPACE_SELF));
	case D_CALL:
		return id && id->kind == ID_SUBR && id->subr->left_out == SUBR_FINDS;
	case D_COND:
		return may_be_null(c, n->lhs) || may_be_null(c, n->rhs);
	case D_ASSIGN:
		return may_be_null(c, n->rhs);
	case D_BINARY:
		return n->op == D_OP_COMMA && may_be_null(c, n->rhs);
	case D_CAST:
	case D_STRINGOF:
		return may_be_null(c, n->base);
	default:
		return type_is_integer(n->type) && d_const(c->prog, n, &v) && !v;
	}
}

/* Does @n free a dynamic variable?  x = 0 does, whatever x's type. */
static bool is_freed(const struct check *c, const struct d_node *n)
{
	const struct d_node *l = n->lhs;
	int64_t v;

	return type_is_sou(l->type) && l->ident && (l->ident->kind == ID_ARRAY || l->ident->space == SPACE_SELF) &&
	       (l->kind == D_NAME || l->kind == D_INDEX) && d_const(c->prog, n->rhs, &v) && !v;
}

static const struct type *check_assign(struct check *c, struct d_node *n)
{
	struct d_node *l = n->lhs;
	unsigned int errors = c->diag->errors;
	const struct type *lt, *rt;

	if (check_is_agg_ref(l)) {
		if (n != c->stmt) {
			check_error(c, n->pos, "D_CG_EXPR", "an aggregation may not be assigned in a D expression "
				    "(D program context required)");
			return NULL;
		}
		return check_agg_assign(c, n) ? c->t_void : NULL;
	}
	lt = check_target(c, l, USE_ASSIGN);
	rt = check_expr(c, n->rhs);
	if (!rt || c->diag->errors != errors)
		return NULL;
	if (!lt) {
		if (!type_variable(c, l->ident, l, n->rhs))
			return NULL;
		l->type = lt = l->ident->type;
		l->user = l->ident->user;
	}
	if (type_is_array(lt)) {
		check_error(c, n->pos, "D_OP_ARRFUN", "operator = may not be applied to operand of type \"%s\"",
			    check_text(c, l));
		return NULL;
	}
	if (!type_takes(c, lt, l->user, n->rhs) && is_lvalue(l) && !is_freed(c, n)) {
		incompatible(c, n, "=");
		return NULL;
	}
	if (type_is_ptr(n->rhs->type) && !check_not_xlated(c, n->rhs, "operator ="))
		return NULL;
	if (type_is_ptr(lt))
		n->rhs = as_pointer(c, n->rhs);
	if (!check_writable(c, l, "="))
		return NULL;
	if (type_is_sou(lt) && type_size(lt) > STORAGE_COPY_MAX) {
		check_unsupported(c, n->pos, arena_printf(c->arena, "assigning a struct or union of more than %d bytes",
							  STORAGE_COPY_MAX), "assign the members that are needed");
		return NULL;
	}
	n->used = n != c->stmt;
	n->user = l->user;
	if (type_is_string(lt) && l->kind == D_NAME && l->ident && may_be_null(c, n->rhs))
		l->ident->nullable = true;
	return lt;
}

static const struct type *check_op_assign(struct check *c, struct d_node *n)
{
	const char *op = arena_printf(c->arena, "%s=", d_op_text(n->op));
	const struct d_node *l = n->lhs, *r = n->rhs;
	bool have_l = check_target(c, n->lhs, USE_MODIFY) != NULL;
	const struct type *t;

	if (!check_expr(c, n->rhs) || !have_l)
		return NULL;
	switch (n->op) {
	case D_OP_ADD:
	case D_OP_SUB:
		if (node_is_string(l) || node_is_string(r)) {
			incompatible(c, n, op);
			return NULL;
		}
		if (node_is_int(l) && node_is_int(r))
			break;
		if (!type_is_ptr(l->type) || type_is_blind_ptr(l->type)) {
			check_error(c, n->pos, "D_OP_VFPTR", "operator %s requires left-hand scalar operand of known "
				    "size", op);
			return NULL;
		}
		if (!node_is_int(r) && !type_ptr_compat(c, l, r, &t)) {
			incompatible(c, n, op);
			return NULL;
		}
		break;
	case D_OP_MUL:
	case D_OP_DIV:
		if (!node_is_int(l) || !node_is_int(r)) {
			check_error(c, n->pos, "D_OP_ARITH", "operator %s requires operands of arithmetic type", op);
			return NULL;
		}
		break;
	default:
		if (!node_is_int(l) || !node_is_int(r)) {
			check_error(c, n->pos, "D_OP_INT", "operator %s requires operands of integral type", op);
			return NULL;
		}
	}
	if ((n->op == D_OP_DIV || n->op == D_OP_MOD) && !check_division(c, n, l->type))
		return NULL;
	if (!check_writable(c, l, op))
		return NULL;
	n->user = l->user;
	return l->type;
}

static const struct type *check_step(struct check *c, struct d_node *n)
{
	struct d_node *b = n->base;
	unsigned int errors = c->diag->errors;

	if (!check_target(c, b, USE_ASSIGN)) {
		if (c->diag->errors != errors)
			return NULL;
		b->type = b->ident->type = c->t_int64;
	}
	if (!node_is_scalar(b)) {
		check_error(c, n->pos, "D_OP_SCALAR", "operator %s requires operand of scalar type", wrong(n));
		return NULL;
	}
	if (type_is_blind_ptr(b->type)) {
		check_error(c, n->pos, "D_OP_VFPTR", "operator %s requires an operand of known size", wrong(n));
		return NULL;
	}
	if (!check_writable(c, b, wrong(n)))
		return NULL;
	n->user = b->user;
	return b->type;
}

/* --- memory ------------------------------------------------------------------------------------------ */

/* The type that the pointer @ptr points to. */
static const struct type *check_deref(struct check *c, struct d_node *n, const struct d_node *ptr)
{
	const struct type *to;

	if (!node_is_ptr(ptr) && node_is_string(ptr))
		return type_int(c->types, 1, true);
	if (!node_is_ptr(ptr)) {
		check_error(c, n->pos, "D_DEREF_NONPTR", "cannot dereference non-pointer type");
		if (node_is_int(ptr))
			diag_hint(c->diag, "cast the address to a pointer first, as in *(int *)copyin(arg0, 4)");
		return NULL;
	}
	to = type_target(ptr->type);
	if (type_is_void(to)) {
		check_error(c, n->pos, "D_DEREF_VOID", "cannot dereference pointer to void");
		return NULL;
	}
	if (type_strip(to)->kind == TYPE_FUNC) {
		check_error(c, n->pos, "D_DEREF_FUNC", "cannot dereference pointer to function");
		return NULL;
	}
	if (!type_is_string(to) && (!type_is_complete(to) || !type_size(to))) {
		check_error(c, n->pos, "D_OP_INCOMPLETE", "cannot dereference pointer to incomplete type %s",
			    type_text(c->arena, to));
		return NULL;
	}
	n->user = ptr->user;
	return to;
}

/* Report a constant index of @n that is outside of the array variable. */
static bool check_range(struct check *c, struct d_node *n)
{
	const struct type *t = type_strip(n->base->type);
	int64_t v;

	if (t->kind == TYPE_ARRAY && !t->complete && check_root(n->base)) {
		check_error(c, n->pos, "D_ARR_BOUNDS", "a variable has no elements of an array without dimension: \"%s\"",
			    check_text(c, n->base));
		return false;
	}
	if (t->kind != TYPE_ARRAY || !check_root(n->base) || !d_const(c->prog, n->args[0], &v) ||
	    (v >= 0 && (uint64_t)v < t->count))
		return true;
	check_error(c, n->args[0]->pos, "D_ARR_BOUNDS", "index %lld is out of range for \"%s\"", (long long)v,
		    check_text(c, n->base));
	return false;
}

/* base[i] of a pointer or an array: *(base + i). */
static const struct type *check_index(struct check *c, struct d_node *n)
{
	if (check_is_args(c, n))
		return check_args(c, n);
	if (check_is_uregs(c, n))
		return check_uregs(c, n);
	if (check_is_array_ref(c, n))
		return check_array(c, n, USE_READ);
	if (!check_expr(c, n->base))
		return NULL;
	for (size_t i = 0; i < n->nargs; i++)
		if (!check_expr(c, n->args[i]))
			return NULL;
	if (n->nargs != 1) {
		check_error(c, n->pos, "D_ARR_BADREF", "cannot access %s as an associative array",
			    n->base->name ? n->base->name : "the operand");
		return NULL;
	}
	if (!node_is_int(n->args[0]) && (node_is_ptr(n->base) || node_is_string(n->base))) {
		check_error(c, n->args[0]->pos, "D_OP_INCOMPAT", "operands have incompatible types: \"%s\" + \"%s\"",
			    check_text(c, n->base), check_text(c, n->args[0]));
		return NULL;
	}
	return check_not_xlated(c, n->base, "operator []") && check_range(c, n) ? check_deref(c, n, n->base) : NULL;
}

/*
 * Members of DTrace's psinfo_t and lwpsinfo_t that are built-in variables in dtap.  The probes of proc and sched have
 * ids in place of such structures: args[1]->pr_pid is args[1].
 */
static bool is_psinfo(struct check *c, struct d_node *n)
{
	static const struct {
		const char *member, *name;
	} rows[] = {
		{ "pr_pid", "pid" },	 { "pr_ppid", "ppid" },	      { "pr_uid", "uid" },    { "pr_gid", "gid" },
		{ "pr_fname", "execname" }, { "pr_psargs", "execargs" }, { "pr_lwpid", "tid" },
	};
	struct d_node *b = n->base;
	size_t i;

	if (!n->arrow)
		return false;
	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (strcmp(rows[i].member, n->name) == 0)
			break;
	if (i == sizeof(rows) / sizeof(rows[0]))
		return false;
	if (b->kind == D_NAME && b->scope == D_GLOBAL_SCOPE && !b->mod &&
	    (strcmp(b->name, "curpsinfo") == 0 || strcmp(b->name, "curlwpsinfo") == 0)) {
		*n = *b;
		n->name = rows[i].name;
		return true;
	}
	if ((strcmp(n->name, "pr_pid") != 0 && strcmp(n->name, "pr_lwpid") != 0) || !check_is_args(c, b) ||
	    !check_expr(c, b) || !type_is_integer(b->type))
		return false;
	*n = *b;
	return true;
}

static const struct type *check_member(struct check *c, struct d_node *n)
{
	const char *op = n->arrow ? "->" : ".";
	const struct type *t = check_expr(c, n->base);
	const struct type_member *m;
	struct xlated x = { 0 };
	uint64_t off;

	if (!t)
		return NULL;
	if (!n->arrow && type_slot(t).show == IR_SHOW_STACK)
		return check_stack_member(c, n);
	if (n->arrow) {
		if (!node_is_ptr(n->base)) {
			check_error(c, n->pos, "D_OP_PTR", "operator -> must be applied to a pointer");
			return NULL;
		}
		t = type_target(t);
	}
	t = type_strip(t);
	if (t->kind != TYPE_STRUCT && t->kind != TYPE_UNION) {
		check_error(c, n->pos, "D_OP_SOU", "operator %s cannot be applied to %stype \"%s\"; must be applied to a "
			    "struct or union%s", op, n->arrow ? "pointer to " : "", type_text(c->arena, t),
			    n->arrow ? " pointer" : "");
		return NULL;
	}
	if (!t->complete) {
		check_error(c, n->pos, "D_OP_INCOMPLETE", "operator %s cannot be applied to a forward declaration: no "
			    "%s definition is available", op, type_text(c->arena, t));
		return NULL;
	}
	m = type_find_member(t, n->name, &off);
	if (!m) {
		check_error(c, n->pos, "D_TYPE_MEMBER", "%s is not a member of %s", n->name, type_text(c->arena, t));
		return NULL;
	}
	if (check_xlated(n->base, &x))
		return check_xlated_member(c, n);
	n->aux = (void *)m;
	n->value = off;
	n->user = n->base->user;
	return m->type;
}

static bool is_bit_field(const struct d_node *n)
{
	return n->kind == D_MEMBER && !n->ident && n->aux && ((const struct type_member *)n->aux)->bits;
}

static const struct type *check_addr(struct check *c, struct d_node *n)
{
	struct d_node *b = n->base, *root;

	if (is_bit_field(b)) {
		check_error(c, n->pos, "D_ADDROF_BITFIELD", "cannot take address of bit-field");
		return NULL;
	}
	root = check_root(b);
	if ((root ? root == b || root->kind != D_NAME : b->kind == D_NAME) || b->kind == D_AGG || node_is_agg(b)) {
		check_error(c, n->pos, "D_ADDROF_VAR", "cannot take address of dynamic variable");
		return NULL;
	}
	if (root) {
		if (!root->ident->tag) {
			c->addressed = arena_grow(c->arena, c->addressed, &c->addressed_cap, c->naddressed,
						  sizeof(*c->addressed));
			c->addressed[c->naddressed++] = root->ident;
			root->ident->tag = c->naddressed;
		}
		return type_ptr(c->types, b->type);
	}
	if (!is_lvalue(b) || ((b->kind == D_INDEX || b->kind == D_MEMBER) && b->ident)) {
		check_error(c, n->pos, "D_ADDROF_LVAL", "unacceptable operand for unary & operator");
		return NULL;
	}
	n->user = b->user;
	return type_ptr(c->types, b->type);
}

/* --- the rest ---------------------------------------------------------------------------------------- */

static const struct type *check_unary(struct check *c, struct d_node *n)
{
	struct d_node *b = n->base;

	if (n->op == D_OP_PREINC || n->op == D_OP_PREDEC || n->op == D_OP_POSTINC || n->op == D_OP_POSTDEC)
		return check_step(c, n);
	if (!check_expr(c, b))
		return NULL;
	switch (n->op) {
	case D_OP_DEREF:
		return check_deref(c, n, b);
	case D_OP_ADDR:
		return check_addr(c, n);
	case D_OP_LNOT:
		if (!node_is_scalar(b)) {
			check_error(c, n->pos, "D_OP_SCALAR", "operator ! requires an operand of scalar type");
			if (node_is_string(b))
				diag_hint(c->diag, "compare the string: s == \"\"");
			return NULL;
		}
		return c->t_int;
	case D_OP_NOT:
		if (!node_is_int(b)) {
			check_error(c, n->pos, "D_OP_INT", "operator ~ requires an operand of integral type");
			return NULL;
		}
		return type_promote(c->types, b->type, 0);
	default:
		if (!node_is_int(b)) {
			check_error(c, n->pos, "D_OP_ARITH", "operator %s requires an operand of arithmetic type",
				    wrong(n));
			return NULL;
		}
		return type_promote(c->types, b->type, 0);
	}
}

static const struct type *check_cond(struct check *c, struct d_node *n)
{
	bool have_cond = check_expr(c, n->cond) != NULL;
	struct d_node *l = n->lhs, *r = n->rhs;
	const struct type *t;

	if (!check_operands(c, n) || !have_cond)
		return NULL;
	if (!node_is_scalar(n->cond)) {
		check_error(c, n->pos, "D_OP_SCALAR", "operator ?: expression must be of scalar type");
		return NULL;
	}
	if (node_is_action(l) || node_is_action(r)) {
		check_error(c, n->pos, "D_OP_ACT", "action cannot be used in a conditional context");
		diag_hint(c->diag, "use a clause of its own with a predicate");
		return NULL;
	}
	if (node_is_agg(l) || node_is_agg(r)) {
		check_error(c, n->pos, "D_OP_DYN", "operator ?: operands cannot be of dynamic type");
		return NULL;
	}
	if ((!type_is_void(l->type) && !check_not_xlated(c, l, "operator ?:")) ||
	    (!type_is_void(r->type) && !check_not_xlated(c, r, "operator ?:")))
		return NULL;
	n->user = l->user || r->user;
	if (node_is_int(l) && node_is_int(r))
		return type_same(l->type, r->type) ? l->type : type_wider(c->types, l->type, r->type);
	if (type_is_str_like(l->type) && type_is_str_like(r->type) && (node_is_string(l) || node_is_string(r))) {
		n->user = false;
		return c->t_string;
	}
	if ((node_is_string(l) && node_is_zero(c, r)) || (node_is_string(r) && node_is_zero(c, l)))
		return c->t_string;
	if (type_ptr_compat(c, l, r, &t))
		return type_is_array(t) ? type_ptr(c->types, type_target(t)) : t;
	if (type_is_void(l->type) && type_is_void(r->type))
		return c->t_void;
	if (type_is_sou(l->type) && type_same(l->type, r->type)) {
		check_unsupported(c, n->pos, "?: between structs or unions", "choose between pointers to them");
		return NULL;
	}
	check_error(c, n->pos, "D_OP_INCOMPAT", "operator ?: operands must have compatible types");
	return NULL;
}

static const struct type *check_cast(struct check *c, struct d_node *n)
{
	const struct type *to = n->ctype;
	const struct d_node *b = n->base;

	if (!check_expr(c, n->base))
		return NULL;
	if (node_is_action(b)) {
		check_error(c, b->pos, "D_CG_EXPR", "%s( ) may not be called from a D expression (D program context "
			    "required)", b->base->name);
		return NULL;
	}
	if (!type_is_complete(to) && !type_is_void(to)) {
		check_error(c, n->pos, "D_DECL_INCOMPLETE", "incomplete struct/union/enum %s", type_text(c->arena, to));
		return NULL;
	}
	if ((type_is_ptr(to) || type_is_string(to)) && !check_not_xlated(c, n->base, "a cast"))
		return NULL;
	n->user = b->user || type_is_user(to);
	if (node_is_agg(b)) {
		;
	} else if (type_is_string(to)) {
		if (node_is_scalar(b) || node_is_ptr(b) || type_is_str_like(b->type)) {
			n->user = false;
			return to;
		}
	} else if (type_is_void(to) || (type_is_scalar(to) && node_is_scalar(b)) ||
		   (type_is_ptr(to) && node_is_ptr(b))) {
		return to;
	} else if (type_is_integer(to) && type_is_array(b->type)) {
		return to;
	} else if (!type_is_void(b->type) && type_same(to, b->type)) {
		return to;
	}
	check_error(c, n->pos, "D_CAST_INVAL", "invalid cast expression: \"%s\" to \"%s\"", check_text(c, b),
		    type_text(c->arena, to));
	return NULL;
}

static const struct type *check_stringof(struct check *c, struct d_node *n)
{
	const struct d_node *b = n->base;

	if (!check_expr(c, n->base))
		return NULL;
	if (!node_is_agg(b) && (node_is_scalar(b) || node_is_ptr(b) || type_is_str_like(b->type)))
		return c->t_string;
	check_error(c, n->pos, "D_STRINGOF_TYPE", "cannot apply stringof to a value of type %s", check_text(c, b));
	return NULL;
}

/* The value of sizeof; a string has the session's string size. */
static uint64_t size_of(const struct check *c, const struct type *t, const struct d_node *n)
{
	if (n && n->kind == D_STR)
		return n->str_len + 1;
	if (type_is_string(t))
		return c->opts->strsize;
	return type_size(t);
}

static const struct type *check_sizeof(struct check *c, struct d_node *n)
{
	const struct type *t = n->ctype;

	if (!t) {
		t = check_expr(c, n->base);
		if (!t)
			return NULL;
		if (is_bit_field(n->base)) {
			check_error(c, n->pos, "D_SIZEOF_BITFIELD", "cannot apply sizeof to a bit-field");
			return NULL;
		}
	}
	n->value = size_of(c, t, n->base);
	if (!n->value) {
		check_error(c, n->pos, "D_SIZEOF_TYPE", "cannot apply sizeof to an operand of unknown size");
		return NULL;
	}
	return c->t_size;
}

static const struct type *check_offsetof(struct check *c, struct d_node *n)
{
	const struct type *t = type_strip(n->ctype);
	const struct type_member *m;
	uint64_t off;

	if ((t->kind != TYPE_STRUCT && t->kind != TYPE_UNION) || !t->complete) {
		check_error(c, n->pos, "D_OFFSETOF_TYPE", "offsetof operand must be a struct or union type");
		return NULL;
	}
	m = type_find_member(t, n->name, &off);
	if (!m) {
		check_error(c, n->pos, "D_TYPE_MEMBER", "%s is not a member of %s", n->name, type_text(c->arena, t));
		return NULL;
	}
	if (m->bits) {
		check_error(c, n->pos, "D_OFFSETOF_BITFIELD", "cannot take offset of a bit-field: %s", n->name);
		return NULL;
	}
	n->value = off / 8;
	return c->t_size;
}

/* Only actions take an aggregation, and report one that nothing was assigned to. */
static const struct type *check_agg_ref(struct check *c, struct d_node *n)
{
	const struct d_node *name = check_agg_name(c, n);
	struct d_ident *id;

	if (!name)
		return NULL;
	id = ident_find(c, SPACE_AGG, name->name);
	n->ident = id ? id : ident_new(c, ID_AGG, SPACE_AGG, name->name, name->pos);
	return &check_agg_type;
}

const struct type *check_expr(struct check *c, struct d_node *n)
{
	const struct type *t;

	if (n->kind == D_INT || n->kind == D_STR)
		return n->type;
	n->type = NULL;
	n->ident = NULL;
	n->user = false;
	switch (n->kind) {
	case D_NAME:
		t = check_name(c, n, USE_READ);
		break;
	case D_AGG:
		t = check_agg_ref(c, n);
		break;
	case D_INDEX:
		t = check_is_agg_ref(n) ? check_agg_ref(c, n) : check_index(c, n);
		break;
	case D_CALL:
		t = check_call(c, n, false);
		break;
	case D_MEMBER:
		t = is_psinfo(c, n) ? check_expr(c, n) : check_member(c, n);
		break;
	case D_UNARY:
		t = check_unary(c, n);
		break;
	case D_BINARY:
		t = check_binary(c, n);
		break;
	case D_ASSIGN:
		t = n->op == D_OP_NONE ? check_assign(c, n) : check_op_assign(c, n);
		break;
	case D_COND:
		t = check_cond(c, n);
		break;
	case D_CAST:
		t = check_cast(c, n);
		break;
	case D_STRINGOF:
		t = check_stringof(c, n);
		break;
	case D_SIZEOF:
		t = check_sizeof(c, n);
		break;
	case D_OFFSETOF:
		t = check_offsetof(c, n);
		break;
	default:
		t = check_xlate(c, n);
	}
	return n->type = t;
}
