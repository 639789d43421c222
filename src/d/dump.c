/*
 * The tree as text, one item a line: an S-expression for each, the operators as the script writes them.
 */
#include "d/ast.h"

#include "base/strbuf.h"

const char *d_op_text(enum d_op op)
{
	static const char *const texts[] = {
		[D_OP_NONE] = "", [D_OP_ADD] = "+", [D_OP_SUB] = "-", [D_OP_MUL] = "*", [D_OP_DIV] = "/",
		[D_OP_MOD] = "%", [D_OP_AND] = "&", [D_OP_OR] = "|", [D_OP_XOR] = "^", [D_OP_SHL] = "<<",
		[D_OP_SHR] = ">>", [D_OP_EQ] = "==", [D_OP_NE] = "!=", [D_OP_LT] = "<", [D_OP_LE] = "<=",
		[D_OP_GT] = ">", [D_OP_GE] = ">=", [D_OP_LAND] = "&&", [D_OP_LOR] = "||", [D_OP_LXOR] = "^^",
		[D_OP_COMMA] = ",", [D_OP_NEG] = "-", [D_OP_PLUS] = "+", [D_OP_NOT] = "~", [D_OP_LNOT] = "!",
		[D_OP_DEREF] = "*", [D_OP_ADDR] = "&", [D_OP_PREINC] = "++", [D_OP_PREDEC] = "--",
		[D_OP_POSTINC] = "++", [D_OP_POSTDEC] = "--",
	};

	return texts[op];
}

static void dump_string(struct strbuf *out, const char *s, size_t len)
{
	size_t i;

	strbuf_putc(out, '"');
	for (i = 0; i < len; i++) {
		if (s[i] == '"' || s[i] == '\\')
			strbuf_printf(out, "\\%c", s[i]);
		else if ((unsigned char)s[i] < ' ' || s[i] == 0x7f)
			strbuf_printf(out, "\\%03o", (unsigned int)(unsigned char)s[i]);
		else
			strbuf_putc(out, s[i]);
	}
	strbuf_putc(out, '"');
}

static void dump_args(struct strbuf *out, const struct d_node *n)
{
	size_t i;

	for (i = 0; i < n->nargs; i++) {
		strbuf_putc(out, ' ');
		d_dump_node(out, n->args[i]);
	}
	strbuf_putc(out, ')');
}

static void dump_type(struct strbuf *out, const struct type *t)
{
	strbuf_putc(out, '<');
	type_print(out, t, NULL);
	strbuf_putc(out, '>');
}

/* (what base) */
static void dump_base(struct strbuf *out, const char *what, const char *behind, const struct d_node *base)
{
	strbuf_printf(out, "(%s%s ", what, behind);
	d_dump_node(out, base);
	strbuf_putc(out, ')');
}

void d_dump_node(struct strbuf *out, const struct d_node *n)
{
	static const char *const scopes[] = { [D_GLOBAL_SCOPE] = "", [D_SELF] = "self->", [D_THIS] = "this->" };

	switch (n->kind) {
	case D_INT:
		strbuf_printf(out, type_is_signed(n->type) ? "%lld" : "%lluU", (unsigned long long)n->value);
		break;
	case D_STR:
		dump_string(out, n->str, n->str_len);
		break;
	case D_NAME:
		strbuf_printf(out, "%s%s%s%s", scopes[n->scope], n->mod ? n->mod : "", n->mod ? "`" : "", n->name);
		break;
	case D_AGG:
		strbuf_printf(out, "@%s", n->name);
		break;
	case D_INDEX:
	case D_CALL:
		strbuf_puts(out, n->kind == D_INDEX ? "([] " : "(call ");
		d_dump_node(out, n->base);
		dump_args(out, n);
		break;
	case D_MEMBER:
		dump_base(out, n->arrow ? "->" : ".", n->name, n->base);
		break;
	case D_UNARY:
		dump_base(out, n->op == D_OP_POSTINC || n->op == D_OP_POSTDEC ? "post" : "", d_op_text(n->op), n->base);
		break;
	case D_BINARY:
	case D_ASSIGN:
		strbuf_printf(out, "(%s%s ", d_op_text(n->op), n->kind == D_ASSIGN ? "=" : "");
		d_dump_node(out, n->lhs);
		strbuf_putc(out, ' ');
		d_dump_node(out, n->rhs);
		strbuf_putc(out, ')');
		break;
	case D_COND:
		strbuf_puts(out, "(? ");
		d_dump_node(out, n->cond);
		strbuf_putc(out, ' ');
		d_dump_node(out, n->lhs);
		strbuf_putc(out, ' ');
		d_dump_node(out, n->rhs);
		strbuf_putc(out, ')');
		break;
	case D_CAST:
	case D_XLATE:
	case D_SIZEOF:
	case D_OFFSETOF:
		strbuf_puts(out, n->kind == D_CAST ? "(cast" : n->kind == D_XLATE ? "(xlate" :
			    n->kind == D_SIZEOF ? "(sizeof" : "(offsetof");
		if (n->ctype) {
			strbuf_putc(out, ' ');
			dump_type(out, n->ctype);
		}
		if (n->name)
			strbuf_printf(out, " %s", n->name);
		if (n->base) {
			strbuf_putc(out, ' ');
			d_dump_node(out, n->base);
		}
		strbuf_putc(out, ')');
		break;
	case D_STRINGOF:
		dump_base(out, "stringof", "", n->base);
		break;
	}
}

static void dump_block(struct strbuf *out, const struct d_block *b)
{
	const struct d_stmt *s;
	size_t i;

	strbuf_puts(out, "{");
	for (i = 0; i < b->n; i++) {
		s = b->stmts[i];
		strbuf_putc(out, ' ');
		if (s->kind == D_STMT_IF)
			strbuf_puts(out, "(if ");
		d_dump_node(out, s->expr);
		if (s->kind == D_STMT_IF) {
			strbuf_putc(out, ' ');
			dump_block(out, s->yes);
			if (s->no) {
				strbuf_putc(out, ' ');
				dump_block(out, s->no);
			}
			strbuf_putc(out, ')');
		}
	}
	strbuf_puts(out, " }");
}

static void dump_params(struct strbuf *out, const struct d_params *ps, char open, char close)
{
	size_t i;

	strbuf_putc(out, open);
	for (i = 0; i < ps->n; i++) {
		strbuf_puts(out, i ? ", " : "");
		type_print(out, ps->v[i].type, ps->v[i].name);
	}
	if (ps->varargs)
		strbuf_puts(out, ps->n ? ", ..." : "...");
	strbuf_putc(out, close);
}

static void dump_clause(struct strbuf *out, const struct d_clause *c)
{
	size_t i;

	strbuf_puts(out, "(clause");
	for (i = 0; i < c->ndescs; i++) {
		const struct probe_desc *d = &c->descs[i];

		strbuf_puts(out, i ? ", " : " ");
		if (d->id)
			strbuf_printf(out, "%u", d->id);
		else
			strbuf_printf(out, "%s:%s:%s:%s", d->prov, d->mod, d->func, d->name);
	}
	if (c->pred) {
		strbuf_puts(out, " / ");
		d_dump_node(out, c->pred);
		strbuf_puts(out, " /");
	}
	if (c->body) {
		strbuf_putc(out, ' ');
		dump_block(out, c->body);
	}
	strbuf_puts(out, ")");
}

static void dump_decl(struct strbuf *out, const struct d_decl *d)
{
	strbuf_printf(out, "(decl %s%s", d->is_extern ? "extern " : "",
		      d->scope == D_SELF ? "self " : d->scope == D_THIS ? "this " : "");
	type_print(out, d->type, d->name);
	if (d->assoc)
		dump_params(out, &d->keys, '[', ']');
	strbuf_putc(out, ')');
}

static void dump_inline(struct strbuf *out, const struct d_inline *inl)
{
	strbuf_puts(out, "(inline ");
	type_print(out, inl->type, inl->name);
	if (inl->assoc)
		dump_params(out, &inl->params, '[', ']');
	strbuf_puts(out, " = ");
	d_dump_node(out, inl->expr);
	strbuf_putc(out, ')');
}

static void dump_xlator(struct strbuf *out, const struct d_xlator *x)
{
	size_t i;

	strbuf_puts(out, "(translator ");
	dump_type(out, x->out);
	strbuf_puts(out, " <");
	type_print(out, x->in, x->param);
	strbuf_putc(out, '>');
	for (i = 0; i < x->nmembers; i++) {
		strbuf_printf(out, " (%s = ", x->members[i].name);
		d_dump_node(out, x->members[i].expr);
		strbuf_putc(out, ')');
	}
	strbuf_putc(out, ')');
}

static void dump_provider(struct strbuf *out, const struct d_provider *prov)
{
	size_t i;

	strbuf_printf(out, "(provider %s", prov->name);
	for (i = 0; i < prov->nprobes; i++) {
		strbuf_printf(out, " (probe %s", prov->probes[i].name);
		dump_params(out, &prov->probes[i].args, '(', ')');
		if (prov->probes[i].has_xargs) {
			strbuf_puts(out, " : ");
			dump_params(out, &prov->probes[i].xargs, '(', ')');
		}
		strbuf_putc(out, ')');
	}
	strbuf_putc(out, ')');
}

static void dump_pragma(struct strbuf *out, const struct d_pragma *pr)
{
	static const char *const kinds[] = { [D_PRAGMA_OPTION] = "option", [D_PRAGMA_ATTRIBUTES] = "attributes",
					     [D_PRAGMA_BINDING] = "binding", [D_PRAGMA_DEPENDS] = "depends_on" };

	strbuf_printf(out, "(pragma %s %s", kinds[pr->kind], pr->name);
	if (pr->value)
		strbuf_printf(out, "%s%s", pr->kind == D_PRAGMA_OPTION ? "=" : " ", pr->value);
	strbuf_putc(out, ')');
}

void d_dump(struct strbuf *out, const struct d_prog *p)
{
	size_t i;

	for (i = 0; i < p->nitems; i++) {
		const struct d_item *item = &p->items[i];

		switch (item->kind) {
		case D_ITEM_CLAUSE:
			dump_clause(out, item->clause);
			break;
		case D_ITEM_DECL:
			dump_decl(out, item->decl);
			break;
		case D_ITEM_INLINE:
			dump_inline(out, item->inl);
			break;
		case D_ITEM_XLATOR:
			dump_xlator(out, item->xlator);
			break;
		case D_ITEM_PROVIDER:
			dump_provider(out, item->provider);
			break;
		case D_ITEM_PRAGMA:
			dump_pragma(out, item->pragma);
			break;
		}
		strbuf_putc(out, '\n');
	}
}
