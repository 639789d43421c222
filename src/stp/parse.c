#include "stp/parse.h"

#include <stdarg.h>
#include <string.h>

#include "base/arena.h"
#include "lang/diag.h"

/* Limits: points from the alternations of one probe; nesting. */
enum { MAX_POINTS = 10000, MAX_NESTING = 200 };

/* --- tokens and reports ------------------------------------------------------------------------------ */

bool stp_at_op(const struct stp_parser *p, const char *op)
{
	return p->t->kind == STP_OP && !strcmp(p->t->text, op);
}

bool stp_at_keyword(const struct stp_parser *p, const char *word)
{
	return p->t->kind == STP_KEYWORD && !strcmp(p->t->text, word);
}

bool stp_accept_op(struct stp_parser *p, const char *op)
{
	if (!stp_at_op(p, op))
		return false;
	p->t++;
	return true;
}

bool stp_accept_keyword(struct stp_parser *p, const char *word)
{
	if (!stp_at_keyword(p, word))
		return false;
	p->t++;
	return true;
}

bool stp_parse_error(struct stp_parser *p, const struct stp_tok *t, const char *tag, const char *fmt, ...)
{
	const struct stp_tok *from = t->from;
	va_list ap;

	if (p->failed)
		return false;
	p->failed = true;
	va_start(ap, fmt);
	if (t->kind == STP_JUNK)
		diag_error(p->diag, t->pos, "S_JUNK", "parse error: %s\n         at: junk ''", t->text);
	else
		diag_error(p->diag, t->pos, tag, "parse error: %s\n        saw: %s",
			   arena_vprintf(p->arena, fmt, ap), stp_tok_text(p->arena, t));
	va_end(ap);
	if (from)
		diag_hint(p->diag, "in expansion of macro: %s at line %u", stp_tok_text(p->arena, from),
			  from->pos.line);
	return false;
}

bool stp_expected(struct stp_parser *p, const char *what)
{
	return stp_parse_error(p, p->t, p->t->kind == STP_EOF ? "S_EOF" : "S_SYNTAX", "expected %s", what);
}

bool stp_expect_op(struct stp_parser *p, const char *op)
{
	return stp_accept_op(p, op) || stp_expected(p, arena_printf(p->arena, "'%s'", op));
}

const char *stp_parse_name(struct stp_parser *p)
{
	if (p->t->kind == STP_IDENT)
		return (p->t++)->text;
	stp_expected(p, "identifier");
	return NULL;
}

bool stp_enter(struct stp_parser *p)
{
	if (++p->depth <= MAX_NESTING)
		return true;
	p->depth--;
	return stp_parse_error(p, p->t, "S_NESTING", "nested too deeply");
}

bool stp_embedded(struct stp_parser *p)
{
	if (!p->guru)
		return stp_parse_error(p, p->t, "S_EMBEDDED", "embedded code in unprivileged script; need stap -g");
	if (!p->prog->embedded)
		p->prog->embedded = p->t;
	p->t++;
	return true;
}

struct stp_node *stp_new_node(struct stp_parser *p, enum stp_kind kind, const struct stp_tok *t)
{
	struct stp_node *n = arena_new_of(p->arena, struct stp_node);

	n->kind = kind;
	n->pos = t->pos;
	n->what = stp_tok_text(p->arena, t);
	return n;
}

/* --- globals ----------------------------------------------------------------------------------------- */

/* global := name [ '%' ] [ '[' number ']' ] [ '=' literal ] */
static bool parse_global(struct stp_parser *p, bool is_private)
{
	const struct stp_tok *t = p->t;
	const char *name = stp_parse_name(p);
	struct stp_node *size;
	struct stp_var *v;

	if (!name)
		return false;
	for (v = p->prog->globals.first; v; v = v->next)
		if (!strcmp(v->name, name) && v->pos.src == t->pos.src)
			return stp_parse_error(p, t, "S_GLOBAL_REDEF", "duplicate global name");
	v = stp_var_add(p->arena, &p->prog->globals, name, t->pos);
	v->is_global = true;
	v->is_private = is_private;
	v->from_library = p->from_library;
	v->wrap = stp_accept_op(p, "%");
	if (stp_accept_op(p, "[")) {
		t = p->t;
		size = stp_parse_number(p);
		if (!size || !stp_expect_op(p, "]"))
			return false;
		if (size->value <= 0 || size->value > 1000000000)
			return stp_parse_error(p, t, "S_ARRAY_SIZE", "array size out of range");
		v->max_size = size->value;
	}
	if (!stp_at_op(p, "="))
		return true;
	if (v->max_size || v->wrap)
		return stp_parse_error(p, p->t, "S_GLOBAL_INIT", "only scalar globals can be initialized");
	v->arity = 0;
	v->arity_pos = v->type_pos = p->t->pos;
	v->arity_what = v->type_what = stp_tok_text(p->arena, p->t);
	p->t++;
	v->init = stp_parse_literal(p);
	if (!v->init)
		return false;
	v->type = v->init->kind == STP_NUM ? STP_LONG : STP_STRINGS;
	return true;
}

/* globals := global { ',' global } [ ';' ] */
static bool parse_globals(struct stp_parser *p, bool is_private)
{
	do {
		if (!parse_global(p, is_private))
			return false;
	} while (stp_accept_op(p, ","));
	stp_accept_op(p, ";");
	return true;
}

/* --- functions --------------------------------------------------------------------------------------- */

/* type := ':' ('string' | 'long') */
static bool parse_type(struct stp_parser *p, enum stp_type *type, struct src_pos *pos, const char **what)
{
	*pos = p->t->pos;
	*what = stp_tok_text(p->arena, p->t);
	if (stp_accept_keyword(p, "string"))
		*type = STP_STRINGS;
	else if (stp_accept_keyword(p, "long"))
		*type = STP_LONG;
	else
		return stp_expected(p, "'string' or 'long'");
	return true;
}

/* params := [ name [ type ] { ',' name [ type ] } ] ')' */
static bool parse_params(struct stp_parser *p, struct stp_func *f)
{
	while (!stp_accept_op(p, ")")) {
		const struct stp_tok *t = p->t;
		const char *name = stp_parse_name(p);
		struct stp_var *v;

		if (!name)
			return false;
		if (stp_var_find(&f->params, name))
			return stp_parse_error(p, t, "S_PARAM_REDEF", "duplicate parameter names");
		v = stp_var_add(p->arena, &f->params, name, t->pos);
		v->is_param = true;
		v->arity = 0;
		f->nparams++;
		if (stp_accept_op(p, ":") && !parse_type(p, &v->type, &v->type_pos, &v->type_what))
			return false;
		if (!stp_accept_op(p, ",") && !stp_at_op(p, ")"))
			return stp_expected(p, "',' or ')'");
	}
	return true;
}

/* function := 'function' name [ type ] '(' params [ ':' number ] block */
static bool parse_function(struct stp_parser *p, bool is_private)
{
	struct stp_func *f = arena_new_of(p->arena, struct stp_func);
	struct stp_node *priority;
	const struct stp_tok *t;

	f->pos = p->t->pos;
	f->what = stp_tok_text(p->arena, p->t);
	f->is_private = is_private;
	f->from_library = p->from_library;
	f->priority = 1;
	f->locals.tail = &f->locals.first;
	f->params.tail = &f->params.first;
	f->name = stp_parse_name(p);
	if (!f->name)
		return false;
	if (stp_accept_op(p, ":") && !parse_type(p, &f->type, &f->type_pos, &f->type_what))
		return false;
	if (!stp_expect_op(p, "(") || !parse_params(p, f))
		return false;
	if (stp_accept_op(p, ":")) {
		t = p->t;
		priority = stp_parse_literal(p);
		if (!priority)
			return false;
		if (priority->kind != STP_NUM || priority->value <= 0)
			return stp_parse_error(p, t, "S_PRIORITY", "specified priority must be > 0");
		f->priority = priority->value;
	}
	p->in_func = true;
	f->body = stp_parse_block(p);
	p->in_func = false;
	if (!f->body)
		return false;
	*p->prog->funcs_tail = f;
	p->prog->funcs_tail = &f->next;
	return true;
}

/* --- probe points ------------------------------------------------------------------------------------ */

static bool add_point(struct stp_parser *p, struct stp_points *to, struct stp_point *point)
{
	if (to->n >= MAX_POINTS)
		return stp_parse_error(p, p->t, "S_POINTS", "too many probe points");
	to->v = arena_grow(p->arena, to->v, &to->cap, to->n, sizeof(*to->v));
	to->v[to->n++] = point;
	return true;
}

static struct stp_point *join(struct stp_parser *p, const struct stp_point *head, const struct stp_point *tail)
{
	struct stp_point *j = arena_new_of(p->arena, struct stp_point);

	*j = *tail;
	j->pos = head->n ? head->pos : tail->pos;
	j->optional |= head->optional;
	j->sufficient |= head->sufficient;
	j->n = j->cap = head->n + tail->n;
	j->comps = arena_alloc(p->arena, (j->n + 1) * sizeof(*j->comps));
	memcpy(j->comps, head->comps, head->n * sizeof(*j->comps));
	if (tail->n)
		memcpy(j->comps + head->n, tail->comps, tail->n * sizeof(*j->comps));
	return j;
}

/* Append each of @tails to each of @heads. */
static bool multiply(struct stp_parser *p, struct stp_points *heads, const struct stp_points *tails)
{
	struct stp_points all = {0};

	for (size_t i = 0; i < heads->n; i++)
		for (size_t j = 0; j < tails->n; j++)
			if (!add_point(p, &all, join(p, heads->v[i], tails->v[j])))
				return false;
	*heads = all;
	return true;
}

/* Does the token follow the one before it without a blank?  For parts of macros and arguments that is not known. */
static bool touches(const struct stp_tok *t)
{
	bool of_argument = t->pos.line == t[-1].pos.line && t->pos.col == t[-1].pos.col;

	return t->from || t[-1].from || t->pos.src != t[-1].pos.src || of_argument ||
	       (t->pos.line == t[-1].pos.line && t->pos.col == t[-1].pos.col + t[-1].len);
}

/* name := { identifier | keyword | '*' }, without blanks in between */
static bool parse_comp_name(struct stp_parser *p, struct stp_comp *c)
{
	c->pos = p->t->pos;
	while (p->t->kind == STP_IDENT || p->t->kind == STP_KEYWORD || stp_at_op(p, "*")) {
		bool is_word = p->t->kind != STP_OP, behind_word = c->name && p->t[-1].kind != STP_OP;

		if (c->name && ((is_word && behind_word) || !touches(p->t) || stp_at_keyword(p, "if")))
			break;
		c->name = c->name ? arena_printf(p->arena, "%s%s", c->name, p->t->text) : p->t->text;
		p->t++;
	}
	return c->name || stp_expected(p, "identifier or '*' or '{'");
}

static bool parse_points(struct stp_parser *p, struct stp_points *to);

/* comp := name [ '(' literal ')' ] | '{' points '}' */
static bool parse_comp(struct stp_parser *p, struct stp_points *to)
{
	struct stp_point *point;
	struct stp_comp *c;

	if (stp_accept_op(p, "{")) {
		if (!stp_enter(p) || !parse_points(p, to))
			return false;
		p->depth--;
		return stp_expect_op(p, "}");
	}
	point = arena_new_of(p->arena, struct stp_point);
	point->comps = c = arena_new_of(p->arena, struct stp_comp);
	point->n = point->cap = 1;
	point->pos = p->t->pos;
	if (!parse_comp_name(p, c))
		return false;
	if (stp_accept_op(p, "(")) {
		c->arg = stp_parse_literal(p);
		if (!c->arg || !stp_expect_op(p, ")"))
			return false;
	}
	return add_point(p, to, point);
}

/* point := comp { '.' comp } [ '?' | '!' ] [ 'if' '(' expr ')' ] */
static bool parse_point(struct stp_parser *p, struct stp_points *to)
{
	struct stp_points heads = {0}, tails;
	struct stp_node *cond = NULL;
	bool optional, sufficient;

	if (!parse_comp(p, &heads))
		return false;
	while (stp_accept_op(p, ".")) {
		tails = (struct stp_points){0};
		if (!parse_comp(p, &tails) || !multiply(p, &heads, &tails))
			return false;
	}
	optional = stp_accept_op(p, "?");
	sufficient = !optional && stp_accept_op(p, "!");
	if (stp_accept_keyword(p, "if")) {
		if (!stp_expect_op(p, "(") || !(cond = stp_parse_expr(p)) || !stp_expect_op(p, ")"))
			return false;
	}
	for (size_t i = 0; i < heads.n; i++) {
		heads.v[i]->optional |= optional || sufficient;
		heads.v[i]->sufficient |= sufficient;
		if (cond)
			heads.v[i]->cond = cond;
		if (!add_point(p, to, heads.v[i]))
			return false;
	}
	return true;
}

/* points := point { ',' point } */
static bool parse_points(struct stp_parser *p, struct stp_points *to)
{
	do {
		if (!parse_point(p, to))
			return false;
	} while (stp_accept_op(p, ","));
	return true;
}

/* --- probes ------------------------------------------------------------------------------------------ */

/* probe := 'probe' { point ('=' | '+=') } points block [ ',' block ] */
static bool parse_probe(struct stp_parser *p)
{
	struct stp_probe *probe = arena_new_of(p->arena, struct stp_probe);
	bool epilogue;

	probe->pos = p->t[-1].pos;
	probe->from_library = p->from_library;
	if (p->t->kind == STP_EOF)
		return stp_parse_error(p, p->t - 1, "S_EOF", "unexpected end-of-file");
	while (!probe->points.n) {
		struct stp_points points = {0};

		if (!parse_point(p, &points))
			return false;
		epilogue = stp_at_op(p, "+=");
		if (!epilogue && !stp_at_op(p, "=")) {
			probe->points = points;
			break;
		}
		if (points.n > 1)
			return stp_expected(p, "probe point specifier");
		if (points.v[0]->optional)
			return stp_parse_error(p, p->t, "S_ALIAS_NAME",
					       "probe point alias name cannot be optional nor sufficient");
		add_point(p, &probe->names, points.v[0]);
		probe->epilogue |= epilogue;
		p->t++;
	}
	if (stp_accept_op(p, ",") && !parse_points(p, &probe->points))
		return false;
	if (!stp_at_op(p, "{") && p->t->kind != STP_EMBEDDED)
		return stp_expected(p, probe->points.n > 1 ? "one of ', {'" : "one of ', { } = +='");
	probe->body = stp_parse_block(p);
	if (!probe->body)
		return false;
	if (probe->names.n && stp_at_op(p, ",")) {
		if (probe->epilogue)
			return stp_parse_error(p, p->t, "S_EPILOGUE",
					       "Combined prologue and epilogue cannot be defined with '+='");
		p->t++;
		if (!stp_at_op(p, "{"))
			return stp_expected(p, "'{'");
		probe->after = stp_parse_block(p);
		if (!probe->after)
			return false;
	}
	*p->prog->probes_tail = probe;
	p->prog->probes_tail = &probe->next;
	return true;
}

/* --- the file ---------------------------------------------------------------------------------------- */

/* private := 'private' ('function' function | [ 'global' ] globals) */
static bool parse_private(struct stp_parser *p)
{
	if (stp_accept_keyword(p, "function"))
		return parse_function(p, true);
	stp_accept_keyword(p, "global");
	if (p->t->kind != STP_IDENT)
		return stp_expected(p, "'function' or identifier");
	return parse_globals(p, true);
}

/* declaration := probe | 'global' globals | 'function' function | private */
static bool parse_declaration(struct stp_parser *p)
{
	if (stp_accept_keyword(p, "probe"))
		return parse_probe(p);
	if (stp_accept_keyword(p, "global"))
		return parse_globals(p, false);
	if (stp_accept_keyword(p, "function"))
		return parse_function(p, false);
	if (stp_accept_keyword(p, "private"))
		return parse_private(p);
	if (p->t->kind == STP_EMBEDDED)
		return stp_embedded(p);
	return stp_expected(p, "'probe', 'global', 'private', 'function', or '%{'");
}

/* Skip to the next keyword that can start a declaration. */
static void resync(struct stp_parser *p)
{
	while (p->t->kind != STP_EOF && !stp_at_keyword(p, "probe") && !stp_at_keyword(p, "global") &&
	       !stp_at_keyword(p, "function") && !stp_at_keyword(p, "private"))
		p->t++;
	p->failed = false;
	p->in_func = false;
	p->depth = 0;
}

bool stp_parse(struct stp_prog *prog, struct diag *diag, const struct stp_toks *toks, bool from_library, bool guru)
{
	struct stp_parser p = {
		.arena = prog->arena, .diag = diag, .prog = prog, .t = toks->v, .guru = guru,
		.from_library = from_library,
	};
	unsigned int errors = diag->errors;

	if (p.t->kind == STP_EOF && !from_library)
		diag_error(diag, p.t->pos, "S_EMPTY", "parse error: the script is empty");
	while (p.t->kind != STP_EOF) {
		const struct stp_tok *before = p.t;

		if (parse_declaration(&p))
			continue;
		if (p.t == before)
			p.t++;
		resync(&p);
	}
	return diag->errors == errors;
}
