#include "stp/preproc.h"

#include <errno.h>
#include <fnmatch.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "lang/diag.h"

/* Limits far above any real script's nesting and tokens. */
enum { MAX_DEPTH = 200, MAX_WORK = 1 << 22 };

struct stp_macro {
	const char *name;		/* without the @ */
	const struct stp_tok *at;
	bool takes_params;		/* written with parentheses */
	const char **params;
	size_t nparams, params_cap;
	const struct stp_tok *body;
	size_t nbody;
	struct stp_macro *next;
};

/* A run of tokens and the position in it. */
struct run {
	const struct stp_tok *v;
	size_t n, i;
};

static bool expand(struct stp_preproc *pp, struct run *in, const struct stp_tok *from, struct stp_toks *out,
		   unsigned int depth);

static void __attribute__((format(printf, 4, 5)))
error(struct stp_preproc *pp, const struct stp_tok *t, const char *tag, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	diag_error(pp->diag, t->pos, tag, "parse error: %s\n         at: %s", arena_vprintf(pp->arena, fmt, ap),
		   stp_tok_text(pp->arena, t));
	va_end(ap);
}

static bool is_op(const struct stp_tok *t, const char *op)
{
	return t->kind == STP_OP && !strcmp(t->text, op);
}

static const struct stp_tok *peek(const struct run *in)
{
	return in->i < in->n ? &in->v[in->i] : NULL;
}

static bool peek_op(const struct run *in, const char *op)
{
	const struct stp_tok *t = peek(in);

	return t && is_op(t, op);
}

/* --- conditions -------------------------------------------------------------------------------------- */

enum compare_how { PP_VERSION, PP_PATTERN };

static const struct {
	const char *name;
	enum compare_how how;
	size_t off;
} pp_names[] = {
#define PP_NAME(name, how, member) { #name, PP_##how, offsetof(struct stp_env, member) },
#include "stp/pp_names.def"
#undef PP_NAME
};

static bool judge(const char *op, int order)
{
	switch (op[0]) {
	case '<':
		return op[1] ? order <= 0 : order < 0;
	case '>':
		return op[1] ? order >= 0 : order > 0;
	case '=':
		return order == 0;
	default:
		return order != 0;
	}
}

/* Read an operator and its right operand of kind @want.  NULL: reported. */
static const struct stp_tok *read_right(struct stp_preproc *pp, struct run *in, const struct stp_tok *left,
					enum stp_tok_kind want, const char *expected, const char **op)
{
	static const char *const ops[] = { "<", "<=", ">", ">=", "==", "!=" };
	const struct stp_tok *t = peek(in);

	*op = NULL;
	for (size_t i = 0; t && i < sizeof(ops) / sizeof(ops[0]); i++)
		if (is_op(t, ops[i]))
			*op = ops[i];
	if (!*op) {
		error(pp, t ? t : left, "S_PP_COND", "expected comparison operator");
		return NULL;
	}
	in->i++;
	t = peek(in);
	if (!t || t->kind != want) {
		error(pp, t ? t : left, "S_PP_COND", "expected %s", expected);
		return NULL;
	}
	in->i++;
	return t;
}

/* The value of a name known in conditions; false: it is unknown. */
static bool find_name(struct stp_preproc *pp, const char *name, const char **value, enum compare_how *how)
{
	const struct stp_env *env = pp->env;

	for (size_t i = 0; i < sizeof(pp_names) / sizeof(pp_names[0]); i++) {
		if (strcmp(name, pp_names[i].name))
			continue;
		memcpy(value, (const char *)env + pp_names[i].off, sizeof(*value));
		*how = pp_names[i].how;
		return true;
	}
	if (strncmp(name, "CONFIG_", 7))
		return false;
	*value = env->config ? env->config(env->config_ctx, name) : NULL;
	if (!*value)
		*value = "";
	*how = PP_PATTERN;
	return true;
}

static bool compare_name(struct stp_preproc *pp, struct run *in, const struct stp_tok *left, const char *value,
			 enum compare_how how, bool *ret)
{
	const struct stp_tok *right;
	bool equality, pattern;
	const char *op, *other;

	if (!value)
		value = "";
	/* One option may be compared with another. */
	if (!strncmp(left->text, "CONFIG_", 7) && in->i + 1 < in->n && in->v[in->i + 1].kind == STP_IDENT &&
	    find_name(pp, in->v[in->i + 1].text, &other, &how)) {
		if (!read_right(pp, in, left, STP_IDENT, "string literal", &op))
			return false;
		*ret = judge(op, strcmp(value, other ? other : ""));
		return true;
	}
	right = read_right(pp, in, left, STP_STRING, "string literal", &op);
	if (!right)
		return false;
	equality = !strcmp(op, "==") || !strcmp(op, "!=");
	pattern = how == PP_PATTERN || strpbrk(right->text, "*?[");
	if (pattern && !equality) {
		error(pp, right, "S_PP_COND", "expected '==' or '!='");
		return false;
	}
	*ret = judge(op, pattern ? fnmatch(right->text, value, FNM_NOESCAPE) : strverscmp(value, right->text));
	return true;
}

static bool number(const struct stp_tok *t, int64_t *ret)
{
	char *end;

	errno = 0;
	*ret = (int64_t)strtoull(t->text, &end, 0);
	return !errno && end != t->text && !*end;
}

/* comparison := (name | string) op string | number op number */
static bool comparison(struct stp_preproc *pp, struct run *in, const struct stp_tok *at, bool *ret)
{
	const struct stp_tok *left = peek(in), *right;
	enum compare_how how;
	const char *op, *value;
	int64_t a, b;

	if (left && left->kind == STP_IDENT && find_name(pp, left->text, &value, &how)) {
		in->i++;
		return compare_name(pp, in, left, value, how, ret);
	}
	if (left && left->kind == STP_IDENT && !strcmp(left->text, "guru_mode")) {
		in->i++;
		right = read_right(pp, in, left, STP_NUMBER, "number", &op);
		if (!right || !number(right, &b))
			return false;
		if (strcmp(op, "==") && strcmp(op, "!=")) {
			error(pp, right, "S_PP_COND", "expected '==' or '!='");
			return false;
		}
		*ret = judge(op, (int)(pp->env->guru - (b != 0)));
		return true;
	}
	if (left && left->kind == STP_STRING) {
		in->i++;
		right = read_right(pp, in, left, STP_STRING, "string literal as right value", &op);
		if (!right)
			return false;
		*ret = judge(op, strcmp(left->text, right->text));
		return true;
	}
	if (left && left->kind == STP_NUMBER) {
		in->i++;
		right = read_right(pp, in, left, STP_NUMBER, "number literal as right value", &op);
		if (!right)
			return false;
		if (!number(left, &a) || !number(right, &b)) {
			error(pp, right, "S_NUMBER", "number invalid or out of range");
			return false;
		}
		*ret = judge(op, a < b ? -1 : a > b);
		return true;
	}
	error(pp, left ? left : at, "S_PP_COND",
	      "expected 'arch', 'kernel_v', 'kernel_vr', 'systemtap_v',\n"
	      "             'runtime', 'systemtap_privilege', 'CONFIG_...', or\n"
	      "             comparison between strings or integers");
	return false;
}

/* condition := comparison { '&&' comparison } { '||' comparison { '&&' comparison } } */
static bool condition(struct stp_preproc *pp, struct run *in, const struct stp_tok *at, bool *ret)
{
	bool any = false, all, one;

	do {
		all = true;
		do {
			if (!comparison(pp, in, at, &one))
				return false;
			all &= one;
		} while (peek_op(in, "&&") && ++in->i);
		any |= all;
	} while (peek_op(in, "||") && ++in->i);
	*ret = any;
	return true;
}

/* The tokens up to the '%:' (if @else_too) or '%)' of this nesting, which is not consumed.  False: there is none. */
static bool slurp(struct run *in, bool else_too, struct run *ret)
{
	unsigned int nesting = 0;

	*ret = (struct run){ .v = in->v + in->i };
	for (; in->i < in->n; in->i++, ret->n++) {
		const struct stp_tok *t = &in->v[in->i];

		if (is_op(t, "%("))
			nesting++;
		else if (!nesting && (is_op(t, "%)") || (else_too && is_op(t, "%:"))))
			return true;
		else if (is_op(t, "%)"))
			nesting--;
	}
	return false;
}

/* After a mistake in a condition: skip the whole conditional, so that it is reported once. */
static bool skip_conditional(struct run *in)
{
	struct run rest;

	if (slurp(in, false, &rest))
		in->i++;
	return false;
}

static bool ends_condition(const struct stp_tok *t)
{
	return t->kind == STP_EOF || is_op(t, "%?") || is_op(t, "%:") || is_op(t, "%(") || is_op(t, "%)");
}

/* conditional := '%(' condition '%?' tokens [ '%:' tokens ] '%)' */
static bool conditional(struct stp_preproc *pp, struct run *in, const struct stp_tok *from, struct stp_toks *out,
			unsigned int depth)
{
	const struct stp_tok *at = &in->v[in->i++];
	struct run asked = { .v = in->v + in->i }, yes, no = {0};
	struct stp_toks toks = {0};
	bool truth;

	/* The condition may contain macros. */
	for (; in->i < in->n && !ends_condition(&in->v[in->i]); in->i++)
		asked.n++;
	if (!expand(pp, &asked, from, &toks, depth + 1))
		return skip_conditional(in);
	asked = (struct run){ .v = toks.v, .n = toks.n };
	if (!condition(pp, &asked, at, &truth))
		return skip_conditional(in);
	if (asked.i < asked.n || !peek_op(in, "%?")) {
		error(pp, at, "S_PP_COND", "expected '%%?' marker for conditional");
		return skip_conditional(in);
	}
	in->i++;
	if (!slurp(in, true, &yes))
		goto incomplete;
	if (is_op(peek(in), "%:")) {
		in->i++;
		if (!slurp(in, false, &no))
			goto incomplete;
	}
	in->i++;
	return expand(pp, truth ? &yes : &no, from, out, depth + 1);
incomplete:
	error(pp, at, "S_PP_INCOMPLETE", "incomplete conditional at end of file");
	return false;
}

/* --- macros ------------------------------------------------------------------------------------------ */

static const char *const builtin_ops[] = {
	"cast", "defined", "probewrite", "entry", "perf", "var", "avg", "count", "sum", "min", "max", "variance",
	"hist_linear", "hist_log", "const", "kregister", "uregister", "kderef", "uderef",
};

static struct stp_macro *find_macro(const struct stp_preproc *pp, const char *name)
{
	struct stp_macro *m;

	for (m = pp->macros; m && strcmp(m->name, name); m = m->next)
		;
	return m;
}

static bool macro_params(struct stp_preproc *pp, struct run *in, struct stp_macro *m)
{
	const struct stp_tok *t;

	m->takes_params = true;
	in->i++;
	for (;;) {
		t = peek(in);
		if (!t || t->kind != STP_IDENT) {
			error(pp, t ? t : m->at, "S_MACRO", "expected identifier");
			return false;
		}
		in->i++;
		m->params = arena_grow(pp->arena, m->params, &m->params_cap, m->nparams, sizeof(*m->params));
		m->params[m->nparams++] = t->text;
		if (peek_op(in, ")")) {
			in->i++;
			return true;
		}
		if (!peek_op(in, ",")) {
			t = peek(in);
			error(pp, t ? t : m->at, "S_MACRO", "expected ',' or ')'");
			return false;
		}
		in->i++;
	}
}

/* macro := '@define' name [ '(' name { ',' name } ')' ] '%(' tokens '%)' */
static bool define(struct stp_preproc *pp, struct run *in)
{
	const struct stp_tok *at = &in->v[in->i++], *t = peek(in);
	struct stp_macro *m, *old;
	struct run body;

	if (!t || t->kind != STP_IDENT) {
		error(pp, t ? t : at, "S_MACRO", "expected identifier");
		return false;
	}
	m = arena_new_of(pp->arena, struct stp_macro);
	m->name = t->text;
	m->at = t;
	in->i++;
	if (peek_op(in, "(") && !macro_params(pp, in, m))
		return false;
	if (!peek_op(in, "%(")) {
		t = peek(in);
		error(pp, t ? t : at, "S_MACRO", m->takes_params ? "expected '%%('" : "expected '%%(' or '('");
		return false;
	}
	in->i++;
	if (!slurp(in, false, &body)) {
		error(pp, m->at, "S_MACRO", "incomplete macro definition - missing '%%)'");
		return false;
	}
	in->i++;
	for (size_t i = 0; i < body.n; i++)
		if (is_op(&body.v[i], "@define")) {
			error(pp, &body.v[i], "S_MACRO", "'@define' forbidden inside macro body");
			return false;
		}
	m->body = body.v;
	m->nbody = body.n;
	old = find_macro(pp, m->name);
	if (old && old->at->pos.src == m->at->pos.src) {
		error(pp, m->at, "S_MACRO_REDEF", "attempt to redefine macro '@%s' in the same file", m->name);
		diag_hint(pp->diag, "macro '@%s' first defined here: line %u", m->name, old->at->pos.line);
		return false;
	}
	for (size_t i = 0; i < sizeof(builtin_ops) / sizeof(builtin_ops[0]); i++)
		if (!strcmp(m->name, builtin_ops[i]))
			diag_warn(pp->diag, m->at->pos, "S_MACRO_BUILTIN", "macro redefines built-in operator '@%s'",
				  m->name);
	m->next = pp->macros;
	pp->macros = m;
	return true;
}

/* One argument of an invocation: up to a ',' or ')' of this nesting. */
static bool macro_arg(struct run *in, struct run *ret)
{
	unsigned int nesting = 0;

	*ret = (struct run){ .v = in->v + in->i };
	for (; in->i < in->n; in->i++, ret->n++) {
		const struct stp_tok *t = &in->v[in->i];

		if (t->kind == STP_EOF)
			return false;
		if (is_op(t, "(") || is_op(t, "[") || is_op(t, "{"))
			nesting++;
		else if (!nesting && (is_op(t, ",") || is_op(t, ")")))
			return true;
		else if (nesting && (is_op(t, ")") || is_op(t, "]") || is_op(t, "}")))
			nesting--;
	}
	return false;
}

static bool macro_args(struct stp_preproc *pp, struct run *in, const struct stp_tok *at, const struct stp_macro *m,
		       struct run *args)
{
	const struct stp_tok *t = peek(in);
	size_t n = 0;

	if (!t || !is_op(t, "(")) {
		error(pp, t ? t : at, "S_MACRO_ARGS", "expected '(' in invocation of macro '@%s' taking %zu parameter%s",
		      m->name, m->nparams, m->nparams == 1 ? "" : "s");
		return false;
	}
	in->i++;
	if (!m->nparams && peek_op(in, ")")) {
		in->i++;
		return true;
	}
	for (;;) {
		struct run arg;

		if (!macro_arg(in, &arg)) {
			error(pp, at, "S_MACRO_ARGS", "could not find end of macro invocation");
			return false;
		}
		t = &in->v[in->i];
		if (n < m->nparams)
			args[n] = arg;
		n++;
		if (n > m->nparams || (n == m->nparams && is_op(t, ","))) {
			error(pp, t, "S_MACRO_ARGS", "too many parameters for macro '@%s' (expected %zu)", m->name,
			      m->nparams);
			return false;
		}
		in->i++;
		if (is_op(t, ")"))
			break;
	}
	if (n < m->nparams) {
		error(pp, t, "S_MACRO_ARGS", "too few parameters for macro '@%s' (expected %zu)", m->name, m->nparams);
		return false;
	}
	return true;
}

/* @name [ '(' arguments ')' ]: the body with the arguments inserted, expanded again. */
static bool invoke(struct stp_preproc *pp, struct run *in, const struct stp_tok *from, const struct stp_macro *m,
		   struct stp_toks *out, unsigned int depth)
{
	const struct stp_tok *at = &in->v[in->i++];
	struct run *args = arena_alloc(pp->arena, (m->nparams + 1) * sizeof(*args)), body;
	struct stp_toks text = {0};
	struct stp_tok *origin;

	if (m->takes_params && !macro_args(pp, in, at, m, args))
		return false;
	origin = arena_new_of(pp->arena, struct stp_tok);
	*origin = *at;
	if (!origin->from)
		origin->from = from;
	for (size_t i = 0; i < m->nbody; i++) {
		const struct stp_tok *t = &m->body[i];
		size_t k = 0;

		if (t->kind == STP_OP && t->text[0] == '@')
			while (k < m->nparams && strcmp(t->text + 1, m->params[k]))
				k++;
		else
			k = m->nparams;
		for (size_t j = 0; k < m->nparams && j < args[k].n; j++)
			stp_toks_add(pp->arena, &text, &args[k].v[j]);
		if (k == m->nparams)
			stp_toks_add(pp->arena, &text, t);
		pp->work += k < m->nparams ? args[k].n : 1;
		if (pp->work > MAX_WORK)
			break;
	}
	body = (struct run){ .v = text.v, .n = text.n };
	return expand(pp, &body, origin, out, depth + 1);
}

/* --- the whole --------------------------------------------------------------------------------------- */

static bool expand_one(struct stp_preproc *pp, struct run *in, const struct stp_tok *from, struct stp_toks *out,
		       unsigned int depth)
{
	struct stp_tok t = in->v[in->i];
	struct stp_macro *m;

	if (is_op(&t, "@define"))
		return define(pp, in);
	if (is_op(&t, "%("))
		return conditional(pp, in, from, out, depth);
	if (is_op(&t, "%)") || is_op(&t, "%?") || is_op(&t, "%:")) {
		error(pp, &in->v[in->i++], "S_PP_INCOMPLETE", "incomplete conditional - missing '%%('");
		return false;
	}
	m = t.kind == STP_OP && t.text[0] == '@' ? find_macro(pp, t.text + 1) : NULL;
	if (m)
		return invoke(pp, in, from, m, out, depth);
	if (!t.from)
		t.from = from;
	stp_toks_add(pp->arena, out, &t);
	in->i++;
	return true;
}

static bool expand(struct stp_preproc *pp, struct run *in, const struct stp_tok *from, struct stp_toks *out,
		   unsigned int depth)
{
	bool ok = true;

	while (in->i < in->n) {
		if (depth > MAX_DEPTH || ++pp->work > MAX_WORK) {
			if (pp->work < 2 * (size_t)MAX_WORK)
				error(pp, from ? from : &in->v[in->i], "S_MACRO_LOOP",
				      "macros or conditionals nested without end");
			pp->work = 2 * (size_t)MAX_WORK;
			return false;
		}
		ok &= expand_one(pp, in, from, out, depth);
	}
	return ok;
}

void stp_preproc_init(struct stp_preproc *pp, struct arena *a, struct diag *diag, const struct stp_env *env)
{
	static const char text[] = "@define choose_defined(a, b) %( (@defined(@a) ? (@a) : (@b)) %)";
	const struct source *src = source_text(a, "<builtin>", text, sizeof(text) - 1);
	struct stp_toks in = {0}, out = {0};

	memset(pp, 0, sizeof(*pp));
	pp->arena = a;
	pp->diag = diag;
	pp->env = env;
	stp_lex(a, src, &env->args, &in);
	stp_preproc(pp, &in, &out);
}

bool stp_preproc(struct stp_preproc *pp, const struct stp_toks *in, struct stp_toks *out)
{
	struct run r = { .v = in->v, .n = in->n };

	pp->work = 0;
	return expand(pp, &r, NULL, out, 0);
}
