/*
 * The tree as text, in the format of stap -p1, for comparison with SystemTap.
 */
#include "stp/ast.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/strbuf.h"

static const char *const op_texts[] = {
	[STP_OP_NONE] = "", [STP_ADD] = "+", [STP_SUB] = "-", [STP_MUL] = "*", [STP_DIV] = "/", [STP_MOD] = "%",
	[STP_AND] = "&", [STP_OR] = "|", [STP_XOR] = "^", [STP_SHL] = "<<", [STP_SHR] = ">>", [STP_LSHR] = ">>>",
	[STP_CONCAT] = ".", [STP_EQ] = "==", [STP_NE] = "!=", [STP_LT] = "<", [STP_LE] = "<=", [STP_GT] = ">",
	[STP_GE] = ">=", [STP_LAND] = "&&", [STP_LOR] = "||", [STP_NEG] = "-", [STP_PLUS] = "+", [STP_NOT] = "~",
	[STP_LNOT] = "!", [STP_ADDEND] = "<<<",
};

static const char *stp_op_text(enum stp_op op)
{
	return op_texts[op];
}

const char *stp_type_text(enum stp_type type)
{
	static const char *const texts[] = { "unknown", "long", "string", "stats" };

	return texts[type];
}

static void dump_string(struct strbuf *out, const char *s, size_t len)
{
	static const char codes[] = "\a\b\t\n\v\f\r\"\\", names[] = "abtnvfr\"\\";
	const char *at;

	strbuf_putc(out, '"');
	for (size_t i = 0; i < len; i++) {
		at = s[i] ? strchr(codes, s[i]) : NULL;
		if (at)
			strbuf_printf(out, "\\%c", names[at - codes]);
		else if ((unsigned char)s[i] < ' ' || s[i] == 127)
			strbuf_printf(out, "\\%03o", (unsigned char)s[i]);
		else
			strbuf_putc(out, s[i]);
	}
	strbuf_putc(out, '"');
}

static void dump_list(struct strbuf *out, struct stp_node *const *v, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (i)
			strbuf_puts(out, ", ");
		if (v[i])
			stp_dump_node(out, v[i]);
		else
			strbuf_putc(out, '*');
	}
}

static void dump_parts(struct strbuf *out, const struct stp_node *n)
{
	static const char *const pretty[] = { "", "->$", "->$$" };

	for (size_t i = 0; i < n->nparts; i++) {
		if (n->parts[i].name) {
			strbuf_printf(out, "->%s", n->parts[i].name);
		} else {
			strbuf_putc(out, '[');
			stp_dump_node(out, n->parts[i].index);
			strbuf_putc(out, ']');
		}
	}
	strbuf_puts(out, pretty[n->pretty]);
}

static void dump_target(struct strbuf *out, const struct stp_node *n)
{
	if (n->addressed)
		strbuf_putc(out, '&');
	if (n->kind == STP_CAST) {
		strbuf_puts(out, "@cast(");
		stp_dump_node(out, n->l);
		strbuf_printf(out, ", \"%s\"", n->str);
	} else if (n->kind == STP_DEREF) {
		strbuf_putc(out, '(');
		stp_dump_node(out, n->l);
	} else if (n->is_var) {
		strbuf_printf(out, "@var(\"%s\"", n->name);
	} else {
		strbuf_puts(out, n->name);
		dump_parts(out, n);
		return;
	}
	if (n->module)
		strbuf_printf(out, ", \"%s\"", n->module);
	strbuf_putc(out, ')');
	dump_parts(out, n);
}

static void dump_print(struct strbuf *out, const struct stp_node *n)
{
	strbuf_printf(out, "%s(", n->print->name);
	if (n->print->formatted || n->print->delimited) {
		dump_string(out, n->str, n->str_len);
		if (n->nargs)
			strbuf_puts(out, ", ");
	}
	dump_list(out, n->args, n->nargs);
	strbuf_putc(out, ')');
}

/* "(l) op (r)" */
static void dump_binary(struct strbuf *out, const struct stp_node *n, const char *op)
{
	strbuf_putc(out, '(');
	stp_dump_node(out, n->l);
	strbuf_printf(out, ") %s (", op);
	stp_dump_node(out, n->r);
	strbuf_putc(out, ')');
}

/* "before(l)after" */
static void dump_unary(struct strbuf *out, const struct stp_node *n, const char *before, const char *after)
{
	strbuf_printf(out, "%s(", before);
	stp_dump_node(out, n->l);
	strbuf_printf(out, ")%s", after);
}

static void dump_stat(struct strbuf *out, const struct stp_node *n)
{
	strbuf_printf(out, "%s(", stp_stat_text(n->stat));
	stp_dump_node(out, n->l);
	if (n->stat == STP_HIST_LINEAR)
		strbuf_printf(out, ", %" PRId64 ", %" PRId64 ", %" PRId64, n->hist[0], n->hist[1], n->hist[2]);
	else if (n->value)
		strbuf_printf(out, ", %" PRId64, n->value);
	strbuf_putc(out, ')');
}

void stp_dump_node(struct strbuf *out, const struct stp_node *n)
{
	char op[8];

	switch (n->kind) {
	case STP_NUM:
		strbuf_printf(out, "%" PRId64, n->value);
		break;
	case STP_STR:
		dump_string(out, n->str, n->str_len);
		break;
	case STP_NAME:
		strbuf_puts(out, n->name);
		break;
	case STP_INDEX:
		stp_dump_node(out, n->l);
		strbuf_putc(out, '[');
		dump_list(out, n->args, n->nargs);
		strbuf_putc(out, ']');
		break;
	case STP_CALL:
		strbuf_printf(out, "%s(", n->name);
		dump_list(out, n->args, n->nargs);
		strbuf_putc(out, ')');
		break;
	case STP_UNARY:
		dump_unary(out, n, stp_op_text(n->op), "");
		break;
	case STP_ADDRESS:
		dump_unary(out, n, "&", "");
		break;
	case STP_PRE:
		dump_unary(out, n, n->op == STP_ADD ? "++" : "--", "");
		break;
	case STP_POST:
		dump_unary(out, n, "", n->op == STP_ADD ? "++" : "--");
		break;
	case STP_BINARY:
	case STP_LOGIC:
		dump_binary(out, n, stp_op_text(n->op));
		break;
	case STP_COND:
		strbuf_putc(out, '(');
		stp_dump_node(out, n->cond);
		strbuf_puts(out, ")?(");
		stp_dump_node(out, n->l);
		strbuf_puts(out, "):(");
		stp_dump_node(out, n->r);
		strbuf_putc(out, ')');
		break;
	case STP_ASSIGN:
		snprintf(op, sizeof(op), "%s%s", stp_op_text(n->op), n->op == STP_ADDEND ? "" : "=");
		dump_binary(out, n, op);
		break;
	case STP_IN:
		strbuf_putc(out, '[');
		dump_list(out, n->args, n->nargs);
		strbuf_puts(out, "] in ");
		stp_dump_node(out, n->l);
		break;
	case STP_MATCH:
		dump_unary(out, n, "", n->negated ? " !~ " : " =~ ");
		dump_string(out, n->str, n->str_len);
		break;
	case STP_TARGET:
	case STP_CAST:
	case STP_DEREF:
		dump_target(out, n);
		break;
	case STP_ENTRY:
		dump_unary(out, n, "@entry", "");
		break;
	case STP_DEFINED:
		dump_unary(out, n, "@defined", "");
		break;
	case STP_WRITTEN:
		dump_unary(out, n, "@probewrite", "");
		break;
	case STP_REGISTER:
		dump_unary(out, n, n->user ? "@uregister" : "@kregister", "");
		break;
	case STP_PERF:
		strbuf_printf(out, "@perf(\"%s\")", n->name);
		break;
	case STP_CONST:
		strbuf_printf(out, "@const(\"%s\")", n->name);
		break;
	case STP_MEMORY:
		strbuf_puts(out, n->user ? "@uderef(" : "@kderef(");
		stp_dump_node(out, n->l);
		strbuf_puts(out, ", ");
		stp_dump_node(out, n->r);
		strbuf_putc(out, ')');
		break;
	case STP_EXTRACT:
	case STP_HIST:
		dump_stat(out, n);
		break;
	case STP_PRINT:
		dump_print(out, n);
		break;
	}
}

static void dump_sort(struct strbuf *out, const struct stp_stmt *s, unsigned int column)
{
	if (s->sort_dir && s->sort_column == column)
		strbuf_putc(out, s->sort_dir > 0 ? '+' : '-');
}

static void dump_foreach(struct strbuf *out, const struct stp_stmt *s)
{
	strbuf_puts(out, "foreach (");
	if (s->value)
		strbuf_printf(out, "%s = ", s->value->name);
	strbuf_putc(out, '[');
	for (size_t i = 0; i < s->nkeys; i++) {
		strbuf_printf(out, "%s%s", i ? ", " : "", s->keys[i]->name);
		dump_sort(out, s, (unsigned int)i + 1);
	}
	strbuf_puts(out, "] in ");
	stp_dump_node(out, s->array);
	if (s->nslice) {
		strbuf_putc(out, '[');
		dump_list(out, s->slice, s->nslice);
		strbuf_putc(out, ']');
	}
	if (s->sort_by_stat)
		strbuf_printf(out, " %s", stp_stat_text(s->sort_stat));
	dump_sort(out, s, 0);
	if (s->expr) {
		strbuf_puts(out, " limit ");
		stp_dump_node(out, s->expr);
	}
	strbuf_puts(out, ") ");
}

static void dump_optional(struct strbuf *out, const struct stp_node *n, const char *after)
{
	if (n)
		stp_dump_node(out, n);
	strbuf_puts(out, after);
}

static void dump_stmt(struct strbuf *out, const struct stp_stmt *s)
{
	switch (s->kind) {
	case STP_S_NULL:
		strbuf_putc(out, ';');
		break;
	case STP_S_BLOCK:
		strbuf_puts(out, "{\n");
		for (size_t i = 0; i < s->n; i++) {
			dump_stmt(out, s->stmts[i]);
			strbuf_puts(out, ";\n");
		}
		strbuf_putc(out, '}');
		break;
	case STP_S_EXPR:
		stp_dump_node(out, s->expr);
		break;
	case STP_S_IF:
		strbuf_puts(out, "if (");
		stp_dump_node(out, s->expr);
		strbuf_puts(out, ") ");
		dump_stmt(out, s->yes);
		strbuf_puts(out, "\n");
		if (s->no) {
			strbuf_puts(out, "else ");
			dump_stmt(out, s->no);
			strbuf_puts(out, "\n");
		}
		break;
	case STP_S_FOR:
		strbuf_puts(out, "for (");
		dump_optional(out, s->init, "; ");
		dump_optional(out, s->expr, "; ");
		dump_optional(out, s->incr, ") ");
		dump_stmt(out, s->yes);
		break;
	case STP_S_FOREACH:
		dump_foreach(out, s);
		dump_stmt(out, s->yes);
		break;
	case STP_S_RETURN:
		strbuf_puts(out, s->expr ? "return " : "return");
		dump_optional(out, s->expr, "");
		break;
	case STP_S_DELETE:
		strbuf_puts(out, "delete ");
		dump_optional(out, s->expr, "");
		break;
	case STP_S_NEXT:
		strbuf_puts(out, "next");
		break;
	case STP_S_BREAK:
		strbuf_puts(out, "break");
		break;
	case STP_S_CONTINUE:
		strbuf_puts(out, "continue");
		break;
	case STP_S_TRY:
		strbuf_puts(out, "try\n");
		dump_stmt(out, s->yes);
		strbuf_printf(out, "\ncatch %s%s%s\n", s->value ? "(" : "", s->value ? s->value->name : "",
			      s->value ? ")" : "");
		dump_stmt(out, s->no);
		break;
	}
}

void stp_dump_point(struct strbuf *out, const struct stp_point *p)
{
	for (size_t i = 0; i < p->n; i++) {
		strbuf_printf(out, "%s%s", i ? "." : "", p->comps[i].name);
		if (p->comps[i].arg) {
			strbuf_putc(out, '(');
			stp_dump_node(out, p->comps[i].arg);
			strbuf_putc(out, ')');
		}
	}
	if (p->optional)
		strbuf_putc(out, p->sufficient ? '!' : '?');
	if (p->cond) {
		strbuf_puts(out, " if (");
		stp_dump_node(out, p->cond);
		strbuf_putc(out, ')');
	}
}

static void dump_points(struct strbuf *out, const struct stp_points *v, const char *between)
{
	for (size_t i = 0; i < v->n; i++) {
		if (i)
			strbuf_puts(out, between);
		stp_dump_point(out, v->v[i]);
	}
}

static void dump_global(struct strbuf *out, const struct stp_var *v)
{
	strbuf_printf(out, "global %s", v->name);
	if (v->wrap)
		strbuf_putc(out, '%');
	if (v->max_size)
		strbuf_printf(out, "[%" PRId64 "]", v->max_size);
	if (v->init) {
		strbuf_puts(out, " = ");
		stp_dump_node(out, v->init);
	}
	strbuf_putc(out, '\n');
}

static void dump_func(struct strbuf *out, const struct stp_func *f)
{
	strbuf_printf(out, "function %s (", f->name);
	for (const struct stp_var *v = f->params.first; v; v = v->next)
		strbuf_printf(out, "%s%s", v == f->params.first ? "" : ", ", v->name);
	strbuf_puts(out, ")\n");
	dump_stmt(out, f->body);
	strbuf_putc(out, '\n');
}

void stp_dump(struct strbuf *out, const struct stp_prog *p)
{
	for (const struct stp_var *v = p->globals.first; v; v = v->next)
		dump_global(out, v);
	for (const struct stp_probe *a = p->probes; a; a = a->next) {
		if (!a->names.n)
			continue;
		strbuf_puts(out, "probe ");
		dump_points(out, &a->names, " = ");
		strbuf_puts(out, a->epilogue ? " += " : " = ");
		dump_points(out, &a->points, ", ");
		dump_stmt(out, a->body);
		if (a->after) {
			strbuf_puts(out, ",");
			dump_stmt(out, a->after);
		}
		strbuf_putc(out, '\n');
	}
	for (const struct stp_probe *b = p->probes; b; b = b->next) {
		if (b->names.n)
			continue;
		strbuf_puts(out, "probe ");
		dump_points(out, &b->points, ",");
		dump_stmt(out, b->body);
		strbuf_putc(out, '\n');
	}
	for (const struct stp_func *f = p->funcs; f; f = f->next)
		dump_func(out, f);
}
