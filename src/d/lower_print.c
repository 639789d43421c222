/*
 * print(): a value with its type, structs and unions member by member.  Of a pointer: its value, and below it the
 * object that it points to, as an initializer in C, without the members that are zero.
 *
 * It is lowered like a printf() whose format has the types and names, and whose values are the members.
 *
 * Guide: "Output Formatting", "print".  Of a long double only the name is shown, of an array only the first elements.
 */
#include "d/lower.h"

#include <inttypes.h>

#include "base/arena.h"
#include "base/strbuf.h"
#include "d/check.h"
#include "lang/format.h"

enum { SHOWN_ELEMENTS = 16, INDENT = 4, MAX_DEPTH = 16 };

struct printing {
	struct lower *l;
	struct strbuf text;		/* of the format */
	struct src_pos pos;
};

static void print_at(struct printing *p, const struct type *t, const struct storage *o, unsigned int depth);
static void print_node(struct printing *p, struct d_node *n, unsigned int depth);

/* The enumerator with the value @v, or the number if there is none. */
static ir_reg enum_name(struct lower *l, const struct type *t, ir_reg v)
{
	const ir_reg decimal[] = { v, ir_const(&l->b, 10) };
	struct ir_block *done = ir_block_new(&l->b);
	ir_reg name = ir_reg_new(&l->b, IR_STR);

	for (size_t i = 0; i < t->nvalues; i++) {
		struct ir_block *yes = ir_block_new(&l->b), *no = ir_block_new(&l->b);

		ir_br(&l->b, ir_op2(&l->b, IR_EQ, v, ir_const(&l->b, t->values[i]->value)), yes, no);
		ir_at(&l->b, yes);
		ir_mov(&l->b, name, ir_strc(&l->b, t->values[i]->name));
		ir_jmp(&l->b, done);
		ir_at(&l->b, no);
	}
	ir_mov(&l->b, name, ir_call(&l->b, IR_FN_LLTOSTR, decimal, 2));
	ir_jmp(&l->b, done);
	ir_at(&l->b, done);
	return name;
}

/* Is a @t shown as a character?  Bytes of other types are numbers. */
static bool is_char(const struct type *t)
{
	const struct type *base = type_strip(t);

	return base->kind == TYPE_INT && base->integer.rank == RANK_CHAR && base->integer.sign;
}

/* Print the scalar @v. */
static void print_value(struct printing *p, const struct type *t, ir_reg v)
{
	const struct type *base = type_strip(t);
	struct lower *l = p->l;

	if (base->kind == TYPE_ENUM) {
		strbuf_puts(&p->text, "%s");
		lower_field(l, enum_name(l, base, v), l->check->t_string);
		return;
	}
	if (is_char(t))
		strbuf_puts(&p->text, "'%C'");
	else
		strbuf_puts(&p->text, "0x%x");
	lower_field(l, v, t);
}

static void print_text(struct printing *p, ir_reg s)
{
	strbuf_puts(&p->text, "\"%S\"");
	lower_field(p->l, s, p->l->check->t_string);
}

static void indent(struct printing *p, unsigned int depth)
{
	strbuf_printf(&p->text, "%*s", (int)(INDENT * depth), "");
}

/* Print the members of the object at @o, or of the translated @x. */
static void print_members(struct printing *p, const struct type *t, const struct storage *o, const struct xlated *x,
			  unsigned int depth)
{
	type_load(t);
	strbuf_puts(&p->text, "{\n");
	for (size_t i = 0; i < t->nmembers; i++) {
		const struct type_member *m = &t->members[i];
		struct d_node *n = x ? check_xlated_node(p->l->check, x, m->name, p->pos) : NULL;
		struct storage at;

		if (x && !n)
			continue;
		indent(p, depth + 1);
		type_print(&p->text, m->type, NULL);
		if (m->name)
			strbuf_printf(&p->text, " %s", m->name);
		if (m->bits)
			strbuf_printf(&p->text, " :%u", m->bits);
		strbuf_puts(&p->text, " = ");
		if (x) {
			print_node(p, n, depth + 1);
		} else if (m->bits) {
			print_value(p, m->type, lower_get(p->l, o, m->type, m->bit_off, m->bits));
		} else {
			at = lower_part(p->l, o, m->bit_off / 8);
			print_at(p, m->type, &at, depth + 1);
		}
		strbuf_puts(&p->text, "\n");
	}
	indent(p, depth);
	strbuf_puts(&p->text, "}");
}

static void print_elements(struct printing *p, const struct type *t, const struct storage *o, unsigned int depth)
{
	struct storage at;

	strbuf_puts(&p->text, "[ ");
	for (uint64_t i = 0; i < t->count && i < SHOWN_ELEMENTS; i++) {
		strbuf_puts(&p->text, i ? ", " : "");
		at = lower_part(p->l, o, i * type_stride(t->to));
		print_at(p, t->to, &at, depth);
	}
	strbuf_puts(&p->text, t->count > SHOWN_ELEMENTS ? ", ... ]" : " ]");
}

/* The string in an array of @size bytes, which need not end in a NUL. */
static ir_reg char_array(struct printing *p, const struct type *t, const struct storage *o)
{
	uint64_t size = t->count;
	const ir_reg args[] = { lower_in_memory(p->l, o, t), ir_const(&p->l->b, (int64_t)size + 1) };
	ir_reg cut[3];

	if (o->user)
		return ir_call(&p->l->b, IR_FN_COPYINSTR, args, 2);
	cut[0] = ir_call(&p->l->b, IR_FN_STRINGOF, args, 1);
	cut[1] = ir_const(&p->l->b, 0);
	cut[2] = ir_const(&p->l->b, (int64_t)size);
	return ir_call(&p->l->b, IR_FN_SUBSTR, cut, 3);
}

/* As many digits as identify the number. */
static const char *float_format(const struct type *t)
{
	return type_size(t) == 8 ? "%+.15e" : "%+.7e";
}

/* Print the object at @o. */
static void print_at(struct printing *p, const struct type *t, const struct storage *o, unsigned int depth)
{
	const struct type *base = type_strip(t);

	if (depth <= MAX_DEPTH && type_is_float(t) && type_size(t) <= 8) {
		strbuf_puts(&p->text, float_format(t));
		lower_float_field_at(p->l, o, t);
	} else if (depth > MAX_DEPTH || base->kind == TYPE_FLOAT || !type_is_complete(t)) {
		strbuf_puts(&p->text, "<");
		type_print(&p->text, t, NULL);
		strbuf_puts(&p->text, ">");
	} else if (type_is_string(t)) {
		print_text(p, lower_get_string(p->l, o));
	} else if (type_is_array(t) && is_char(base->to)) {
		strbuf_puts(&p->text, "[ ");
		print_text(p, char_array(p, base, o));
		strbuf_puts(&p->text, " ]");
	} else if (type_is_array(t)) {
		print_elements(p, base, o, depth);
	} else if (type_is_sou(t)) {
		print_members(p, base, o, NULL, depth);
	} else {
		print_value(p, t, lower_get(p->l, o, t, 0, 0));
	}
}

static void print_node(struct printing *p, struct d_node *n, unsigned int depth)
{
	struct xlated x = { 0 };
	struct storage o;

	if (type_is_string(n->type)) {
		print_text(p, lower_string(p->l, n));
	} else if (type_is_scalar(n->type)) {
		print_value(p, n->type, lower_expr(p->l, n));
	} else if (type_is_float(n->type) && type_size(n->type) <= 8) {
		strbuf_puts(&p->text, float_format(n->type));
		lower_float_field(p->l, n);
	} else if (check_xlated(n, &x)) {
		print_members(p, type_strip(n->type), NULL, &x, depth);
	} else {
		lower_storage(p->l, n, &o);
		print_at(p, n->type, &o, depth);
	}
}

/* --- what a pointer points to ------------------------------------------------------------------------- */

enum { COLUMN = 44, SHOWN_OBJECT = 64 };	/* the column of the default output behind the probe's name */

static void show_at(struct printing *p, const char *name, const struct type *t, const struct storage *o, uint64_t bit,
		    unsigned int bits, unsigned int depth);

/* The end of a value, or of a part. */
static void end_line(struct printing *p, unsigned int depth)
{
	strbuf_puts(&p->text, depth ? ",\n" : "\n");
}

static void close_part(struct printing *p, char bracket, unsigned int depth)
{
	strbuf_printf(&p->text, "%*s%c", (int)(COLUMN + depth), "", bracket);
	end_line(p, depth);
}

/* The scalar @v; if it decides whether its line is left out, as a value of out/shown.h. */
static void show_value(struct printing *p, const struct type *t, ir_reg v, bool decides)
{
	const struct type *base = type_strip(t);
	bool as_it_is = base->kind == TYPE_INT && !is_char(t);
	const char *number = base->kind == TYPE_INT && !base->integer.sign ? "%u" : "%d";

	if (decides) {
		strbuf_printf(&p->text, "%c%s%c", SHOWN_VALUE, number, as_it_is ? SHOWN_AS_IT_IS : SHOWN_OTHERWISE);
		lower_field(p->l, v, t);
		if (as_it_is)
			return;
	}
	if (as_it_is) {
		strbuf_puts(&p->text, number);
		lower_field(p->l, v, t);
	} else {
		print_value(p, t, v);
	}
}

static void show_members(struct printing *p, const struct type *t, const struct storage *o, unsigned int depth)
{
	type_load(t);
	for (size_t i = 0; i < t->nmembers; i++) {
		const struct type_member *m = &t->members[i];
		struct storage at = lower_part(p->l, o, m->bits ? 0 : m->bit_off / 8);

		show_at(p, m->name, m->type, &at, m->bits ? m->bit_off : 0, m->bits, depth + 1);
	}
}

static void show_elements(struct printing *p, const struct type *t, const struct storage *o, unsigned int depth)
{
	for (uint64_t i = 0; i < t->count && i < SHOWN_OBJECT; i++) {
		struct storage at = lower_part(p->l, o, i * type_stride(t->to));

		show_at(p, NULL, t->to, &at, 0, 0, depth + 1);
	}
	if (t->count > SHOWN_OBJECT)
		strbuf_printf(&p->text, "%*s...\n", (int)(COLUMN + depth + 1), "");
}

/* A line, or a part, for the @t at bit @bit of @o. */
static void show_at(struct printing *p, const char *name, const struct type *t, const struct storage *o, uint64_t bit,
		    unsigned int bits, unsigned int depth)
{
	const struct type *base = type_strip(t);

	strbuf_printf(&p->text, "%*s%s%s%s(", (int)(COLUMN + depth), "", name ? "." : "", name ? name : "", name ? " = " : "");
	if (type_is_sou(t) && base == t && !base->name)
		strbuf_puts(&p->text, base->kind == TYPE_UNION ? "union" : "struct");
	else
		type_print(&p->text, t, NULL);
	strbuf_puts(&p->text, ")");
	if (depth > MAX_DEPTH || !type_is_complete(t) || (type_is_float(t) && type_size(t) > 8)) {
		strbuf_puts(&p->text, "...");
		end_line(p, depth);
	} else if (type_is_array(t)) {
		strbuf_puts(&p->text, " [\n");
		show_elements(p, base, o, depth);
		close_part(p, ']', depth);
	} else if (type_is_sou(t)) {
		strbuf_puts(&p->text, " {\n");
		show_members(p, base, o, depth);
		close_part(p, '}', depth);
	} else if (type_is_float(t)) {
		strbuf_puts(&p->text, "%g");
		lower_float_field_at(p->l, o, t);
		end_line(p, depth);
	} else {
		show_value(p, t, lower_get(p->l, o, t, bit, bits), depth > 0);
		end_line(p, depth);
	}
}

static void show_object(struct printing *p, struct d_node *object)
{
	struct storage o;

	lower_storage(p->l, object, &o);
	strbuf_puts(&p->text, "0x%x = *\n");
	lower_field(p->l, o.addr, object->base->type);
	show_at(p, NULL, object->type, &o, 0, 0, 0);
}

void lower_print(struct lower *l, struct d_node *call)
{
	bool pointer = call->nargs > 1;
	struct ir_rec *rec = lower_rec(l);
	struct printing p = { .l = l, .pos = call->pos };
	struct d_node *n = call->args[0];
	struct fmt *f;
	const char *err;
	size_t off, act;

	ir_rec_act(l->prog, rec, pointer ? IR_ACT_PRINT : IR_ACT_PRINTF, call->pos);
	act = rec->nacts - 1;
	if (pointer) {
		show_object(&p, call->args[1]);
	} else {
		type_print(&p.text, n->type, NULL);
		strbuf_puts(&p.text, " ");
		print_node(&p, n, 0);
	}
	f = fmt_parse(l->prog->arena, FMT_D, strbuf_str(&p.text), p.text.len, &err, &off);
	strbuf_fini(&p.text);
	rec->acts[act].fmt = f;
}
