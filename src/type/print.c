/*
 * Types as C writes them.
 *
 * A declarator is written around its name: what stands to the left of it (base, stars, opening parentheses)
 * first, then the name, then what stands to the right (brackets, parameters).
 */
#include "type/type.h"

#include "base/arena.h"
#include "base/strbuf.h"

static const char *const kinds[] = { [TYPE_STRUCT] = "struct", [TYPE_UNION] = "union", [TYPE_ENUM] = "enum" };

static void print_quals(struct strbuf *out, unsigned int quals, const char *after)
{
	static const struct {
		unsigned int qual;
		const char *name;
	} names[] = { { TYPE_CONST, "const" }, { TYPE_VOLATILE, "volatile" }, { TYPE_RESTRICT, "restrict" },
		    { TYPE_USER, "userland" } };
	size_t i;

	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (quals & names[i].qual)
			strbuf_printf(out, "%s%s", names[i].name, after);
}

static bool is_postfix(const struct type *t)
{
	return t->kind == TYPE_ARRAY || t->kind == TYPE_FUNC;
}

static void left(struct strbuf *out, const struct type *t)
{
	switch (t->kind) {
	case TYPE_PTR:
		left(out, t->to);
		if (out->len && out->s[out->len - 1] != '*')
			strbuf_putc(out, ' ');
		strbuf_puts(out, is_postfix(t->to) ? "(*" : "*");
		break;
	case TYPE_ARRAY:
	case TYPE_FUNC:
		left(out, t->to);
		break;
	case TYPE_QUAL:
		if (t->to->kind == TYPE_PTR) {	/* char *const */
			left(out, t->to);
			print_quals(out, t->quals, "");
		} else {
			print_quals(out, t->quals, " ");
			left(out, t->to);
		}
		break;
	case TYPE_STRUCT:
	case TYPE_UNION:
	case TYPE_ENUM:
		strbuf_printf(out, "%s %s", kinds[t->kind], t->name ? t->name : "(anon)");
		break;
	default:
		strbuf_puts(out, t->name);
		break;
	}
}

static void right(struct strbuf *out, const struct type *t)
{
	size_t i;

	switch (t->kind) {
	case TYPE_PTR:
		if (is_postfix(t->to))
			strbuf_putc(out, ')');
		right(out, t->to);
		break;
	case TYPE_ARRAY:
		if (t->complete)
			strbuf_printf(out, "[%llu]", (unsigned long long)t->count);
		else
			strbuf_puts(out, "[]");
		right(out, t->to);
		break;
	case TYPE_FUNC:
		strbuf_putc(out, '(');
		for (i = 0; i < t->nparams; i++) {
			strbuf_puts(out, i ? ", " : "");
			type_print(out, t->params[i], NULL);
		}
		if (t->varargs)
			strbuf_puts(out, t->nparams ? ", ..." : "...");
		else if (!t->nparams)
			strbuf_puts(out, "void");
		strbuf_putc(out, ')');
		right(out, t->to);
		break;
	case TYPE_QUAL:
		right(out, t->to);
		break;
	default:
		break;
	}
}

void type_print(struct strbuf *out, const struct type *t, const char *name)
{
	const struct type *in = t;

	left(out, t);
	while (in->kind == TYPE_QUAL)
		in = in->to;
	if ((name || is_postfix(in)) && out->len && out->s[out->len - 1] != '*')
		strbuf_putc(out, ' ');
	strbuf_puts(out, name ? name : "");
	right(out, t);
}

const char *type_text(struct arena *a, const struct type *t)
{
	struct strbuf b = { 0 };
	const char *s;

	type_print(&b, t, NULL);
	s = arena_strdup(a, strbuf_str(&b));
	strbuf_fini(&b);
	return s;
}
