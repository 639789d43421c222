/*
 * D programs: clauses, inlines, translators, providers; and the parser's handling of tokens and mistakes.
 *
 * Start at the bottom: parse_program.
 *
 * After a mistake in a statement the parser continues behind its ';', after one in a predicate at the predicate's
 * end, after one in a declaration behind the declaration, so that one run shows several mistakes.
 *
 * Guide: "Program Structure", "Translators", "Statically Defined Tracing for User Applications".
 */
#include "d/parser.h"

#include <ctype.h>
#include <string.h>

#include "base/arena.h"
#include "base/strbuf.h"

/* --- tokens ------------------------------------------------------------------------------------------ */

static void parser_init(struct parser *p, struct d_prog *prog, const struct source *src, enum d_spec spec)
{
	memset(p, 0, sizeof(*p));
	p->arena = prog->arena;
	p->prog = prog;
	p->types = prog->types;
	p->diag = prog->state->diag;
	p->spec = spec;
	lex_init(&p->lex, prog, p->diag, &prog->state->macros, src);
}

enum d_tok peek(struct parser *p)
{
	if (p->failed)
		return TOK_FAIL;
	if (!p->have_tok) {
		lex_token(&p->lex, &p->tok);
		p->have_tok = true;
		if (p->tok.kind == TOK_FAIL)
			p->failed = true;
	}
	return p->tok.kind;
}

struct d_token next(struct parser *p)
{
	struct d_token none = { .kind = TOK_FAIL, .str = "" };

	if (peek(p) == TOK_FAIL) {
		none.pos = here(p);
		none.start = none.end = p->lex.p;
		return none;
	}
	if (p->tok.kind != TOK_EOF)	/* the end stays the end */
		p->have_tok = false;
	return p->tok;
}

bool accept(struct parser *p, enum d_tok kind)
{
	if (peek(p) != kind)
		return false;
	next(p);
	return true;
}

struct src_pos here(struct parser *p)
{
	peek(p);
	return p->have_tok ? p->tok.pos : lex_pos(&p->lex, p->lex.p);
}

bool expect(struct parser *p, enum d_tok kind)
{
	if (accept(p, kind))
		return true;
	syntax(p, tok_text(kind));
	return false;
}

static void report(struct parser *p, struct src_pos pos, const char *tag, const char *fmt, va_list ap)
{
	if (!p->lex.quiet)
		diag_verror(p->diag, pos, tag, fmt, ap);
}

void parse_error(struct parser *p, struct src_pos pos, const char *tag, const char *fmt, ...)
{
	va_list ap;

	if (p->failed)
		return;
	va_start(ap, fmt);
	report(p, pos, tag, fmt, ap);
	va_end(ap);
}

void parse_fail(struct parser *p, struct src_pos pos, const char *tag, const char *fmt, ...)
{
	va_list ap;

	if (p->failed)
		return;
	va_start(ap, fmt);
	report(p, pos, tag, fmt, ap);
	va_end(ap);
	p->failed = true;
}

/* A hint about the token found instead of the expected one, or NULL. */
static const char *remedy(const struct parser *p)
{
	switch (p->tok.kind) {
	case KEY_BREAK:
	case KEY_CONTINUE:
	case KEY_DO:
	case KEY_FOR:
	case KEY_GOTO:
	case KEY_WHILE:
		return "D has no loops: a probe that fires again, or tick-1ms, takes their place";
	case KEY_SWITCH:
	case KEY_CASE:
	case KEY_DEFAULT:
		return "D has no switch: use ?: or several clauses with predicates";
	case KEY_RETURN:
		return "D has no functions of its own: use inline";
	default:
		return NULL;
	}
}

void syntax(struct parser *p, const char *expected)
{
	const char *why;

	if (peek(p) == TOK_FAIL)
		return;
	why = remedy(p);
	parse_fail(p, here(p), "D_SYNTAX", "syntax error near %s: %s expected", tok_show(&p->lex, &p->tok), expected);
	if (why && !p->lex.quiet)
		diag_hint(p->diag, "%s", why);
}

bool enter(struct parser *p)
{
	if (p->nest >= D_MAX_NEST) {
		parse_fail(p, here(p), "D_SYNTAX", "too many levels of nesting: more than %d", D_MAX_NEST);
		return false;
	}
	p->nest++;
	return true;
}

void leave(struct parser *p)
{
	p->nest--;
}

/* --- going on after a mistake ------------------------------------------------------------------------ */

void recover(struct parser *p, enum until until)
{
	unsigned int depth = 0;
	bool done = false;

	p->failed = false;
	p->lex.quiet = true;
	while (!done) {
		if (!p->have_tok)
			lex_token(&p->lex, &p->tok);
		p->have_tok = true;
		switch (p->tok.kind) {
		case TOK_EOF:
			p->lex.quiet = false;
			return;
		case TOK_LBRACE:
			if (until == UNTIL_PRED)
				goto keep;
			depth++;
			break;
		case TOK_RBRACE:
			if (!depth && until != UNTIL_ITEM)
				goto keep;
			if (depth)
				depth--;
			done = !depth && until == UNTIL_ITEM;
			break;
		case TOK_SEMICOLON:
			if (until == UNTIL_PRED)
				goto keep;
			done = !depth;
			break;
		case TOK_END_PRED:
			done = until == UNTIL_PRED;
			break;
		default:
			break;
		}
		p->have_tok = false;
	}
keep:
	p->lex.quiet = false;
	if (until != UNTIL_ITEM || p->lex.p >= p->lex.end)
		return;
	lex_space(&p->lex);	/* "};" ends a struct or a provider */
	if (p->lex.p < p->lex.end && *p->lex.p == ';')
		p->lex.p++;
}

static struct d_item *add_item(struct parser *p, enum d_item_kind kind)
{
	struct d_prog *prog = p->prog;

	prog->items = arena_grow(p->arena, prog->items, &prog->items_cap, prog->nitems, sizeof(*prog->items));
	prog->items[prog->nitems].kind = kind;
	return &prog->items[prog->nitems++];
}

/* --- statements -------------------------------------------------------------------------------------- */

static struct d_block *parse_block(struct parser *p);
static void parse_statement(struct parser *p, struct d_block *b);

/* branch = block | statement */
static struct d_block *parse_branch(struct parser *p)
{
	struct d_block *b;

	if (peek(p) == TOK_LBRACE)
		return parse_block(p);
	b = arena_new_of(p->arena, struct d_block);
	parse_statement(p, b);
	return b;
}

/* if = "if" "(" expression ")" branch ("else" branch)? */
static void parse_if(struct parser *p, struct d_stmt *s)
{
	s->kind = D_STMT_IF;
	next(p);
	expect(p, TOK_LPAR);
	s->expr = parse_expr(p);
	expect(p, TOK_RPAR);
	if (!enter(p))
		return;
	s->yes = parse_branch(p);
	if (accept(p, KEY_ELSE))
		s->no = parse_branch(p);
	leave(p);
}

/* statement = ";" | if | expression (";" | before "}") */
static void parse_statement(struct parser *p, struct d_block *b)
{
	struct d_stmt *s;

	if (accept(p, TOK_SEMICOLON))
		return;
	s = arena_new_of(p->arena, struct d_stmt);
	s->pos = here(p);
	if (peek(p) == KEY_IF) {
		parse_if(p, s);
	} else if (at_type(p) && p->tok.kind != TOK_IDENT) {
		syntax(p, "a statement");
		if (p->failed && !p->lex.quiet)
			diag_hint(p->diag, "variables are declared outside clauses: \"this int x;\" for one of the clause");
		return;
	} else {
		s->kind = D_STMT_EXPR;
		s->expr = parse_expr(p);
		if (peek(p) != TOK_RBRACE && !accept(p, TOK_SEMICOLON))
			syntax(p, "; or }");
	}
	if (p->failed)
		return;
	b->stmts = arena_grow(p->arena, b->stmts, &b->cap, b->n, sizeof(*b->stmts));
	b->stmts[b->n++] = s;
}

/* block = "{" statement* "}" */
static struct d_block *parse_block(struct parser *p)
{
	struct d_block *b = arena_new_of(p->arena, struct d_block);
	struct src_pos open = next(p).pos;
	unsigned int nest = p->nest;

	while (peek(p) != TOK_RBRACE) {
		if (peek(p) == TOK_EOF) {
			syntax(p, "}");
			diag_hint(p->diag, "the { that has no } is in line %u", open.line);
			return b;
		}
		parse_statement(p, b);
		if (p->failed) {
			recover(p, UNTIL_STMT);
			p->nest = nest;
		}
	}
	next(p);
	return b;
}

/* --- probe descriptions ------------------------------------------------------------------------------ */

/* Expand $target, $1 ... in @text.  NULL: reported. */
static const char *expand_desc(struct parser *p, const char *text, struct src_pos pos)
{
	struct strbuf out = { 0 };
	const char *s = text, *e, *name, *value, *why, *ret = NULL;

	while (*s) {
		if (*s != '$') {
			strbuf_putc(&out, *s++);
			continue;
		}
		s += 1 + (s[1] == '$');
		for (e = s; isdigit((unsigned char)*e); e++)
			;
		if (e == s)
			while (isalnum((unsigned char)*e) || *e == '_')
				e++;
		name = arena_strndup(p->arena, s, (size_t)(e - s));
		value = *name ? macro_text(&p->lex, name, true, &why) : NULL;
		if (!value) {
			parse_error(p, pos, "D_PDESC_INVAL",
				    "invalid probe description \"%s\": macro %s $%s is not defined", text,
				    isdigit((unsigned char)*name) ? "argument" : "variable", name);
			if (*name && why && !p->lex.quiet)
				diag_hint(p->diag, "%s", why);
			goto out;
		}
		strbuf_puts(&out, value);
		s = e;
	}
	ret = arena_strdup(p->arena, strbuf_str(&out));
out:
	strbuf_fini(&out);
	return ret;
}

/* Split "prov:mod:func:name".  If parts are missing, p->spec tells which part the last one is. */
static bool split_desc(struct parser *p, const char *text, struct src_pos pos, struct probe_desc *d)
{
	enum { MAX_PART = 255 };
	const char **parts[] = { &d->prov, &d->mod, &d->func, &d->name };
	static const int last[] = { [D_SPEC_FILE] = 3, [D_SPEC_NAME] = 3, [D_SPEC_FUNC] = 2, [D_SPEC_MOD] = 1,
				    [D_SPEC_PROV] = 0 };
	const char *end = text + strlen(text), *s;
	int i;

	d->prov = d->mod = d->func = d->name = "";
	d->pos = pos;
	for (i = last[p->spec]; i >= 0; i--, end = s) {
		for (s = end; s > text && s[-1] != ':'; s--)
			;
		*parts[i] = arena_strndup(p->arena, s, (size_t)(end - s));
		if (end - s > MAX_PART) {
			parse_error(p, pos, "D_PDESC_INVAL", "invalid probe description: a part has more than %d characters",
				    MAX_PART);
			return false;
		}
		if (s == text)
			return true;
		s--;
	}
	if (end == text)	/* an empty part more */
		return true;
	parse_error(p, pos, "D_PDESC_INVAL", "invalid probe description \"%.*s\": Overspecified probe description", MAX_PART, text);
	return false;
}

/* A number stands for a whole description: -P, -m and -f want a part of one. */
static bool number_allowed(struct parser *p, const char *text, struct src_pos pos)
{
	static const char *const parts[] = { [D_SPEC_PROV] = "providers", [D_SPEC_MOD] = "modules",
					     [D_SPEC_FUNC] = "functions" };

	if (!isdigit((unsigned char)*text) || p->spec == D_SPEC_FILE || p->spec == D_SPEC_NAME)
		return true;
	parse_error(p, pos, "D_PDESC_INVAL", "probe identifier %.*s not permitted when specifying %s",
		    (int)strspn(text, "0123456789"), text, parts[p->spec]);
	return false;
}

/* desc = provider:module:function:name, or its last parts, or a number */
static bool parse_desc(struct parser *p, struct probe_desc *d)
{
	struct src_pos pos;
	const char *text = lex_desc(&p->lex, &pos), *s;
	uint64_t id = 0;

	memset(d, 0, sizeof(*d));
	if (!*text) {
		syntax(p, "a probe description");
		return false;
	}
	text = expand_desc(p, text, pos);
	if (!text || !number_allowed(p, text, pos))
		return false;
	if (!*text || text[strspn(text, "0123456789")])
		return split_desc(p, text, pos, d);
	for (s = text; *s && id <= UINT32_MAX; s++)
		id = id * 10 + (uint64_t)(*s - '0');
	if (!id || id > UINT32_MAX) {
		parse_error(p, pos, "D_PDESC_INVAL", "invalid probe id %s", text);
		return false;
	}
	d->prov = d->mod = d->func = d->name = "";
	d->id = (uint32_t)id;
	d->pos = pos;
	return true;
}

/* --- clauses ----------------------------------------------------------------------------------------- */

/* Is @c the next byte after blanks?  Behind a description no token may be read yet. */
static bool at_byte(struct parser *p, char c)
{
	lex_space(&p->lex);
	return p->lex.p < p->lex.end && *p->lex.p == c;
}

/* predicate = "/" expression "/" */
static struct d_node *parse_pred(struct parser *p)
{
	struct src_pos pos = lex_pos(&p->lex, p->lex.p);
	struct d_node *n = NULL;

	p->lex.p++;
	p->lex.pred = true;
	if (peek(p) == TOK_END_PRED) {
		parse_fail(p, pos, "D_SYNTAX", "syntax error: empty predicate");
	} else {
		n = parse_expr(p);
		if (peek(p) != TOK_END_PRED)
			syntax(p, "/ behind the predicate");
	}
	if (p->failed) {
		recover(p, UNTIL_PRED);
		p->nest = 0;
	} else {
		next(p);
	}
	p->lex.pred = false;
	return n;
}

/* clause = desc ("," desc)* predicate? block? */
static void parse_clause(struct parser *p)
{
	struct d_clause *c = arena_new_of(p->arena, struct d_clause);
	bool pred = false;
	struct src_pos word;

	c->pos = lex_pos(&p->lex, p->lex.p);
	if (p->prog->state->in_lib)
		parse_error(p, c->pos, "D_SYNTAX", "a library has declarations and no clauses");
	do {
		struct probe_desc d;

		if (!parse_desc(p, &d)) {
			if (p->failed)
				return;
			continue;
		}
		c->descs = arena_grow(p->arena, c->descs, &c->descs_cap, c->ndescs, sizeof(*c->descs));
		c->descs[c->ndescs++] = d;
	} while (at_byte(p, ',') && p->lex.p++);
	if (at_byte(p, '/')) {
		pred = true;
		c->pred = parse_pred(p);
	}
	if (peek(p) == TOK_LBRACE) {
		c->body = parse_block(p);
	} else if (p->failed) {
		return;
	} else if (pred) {
		parse_error(p, c->pos, "D_SYNTAX", "expected actions { } following probe description and predicate");
		p->failed = peek(p) != TOK_EOF;
	} else if (peek(p) != TOK_EOF) {
		word = here(p);
		syntax(p, "a predicate or { behind the probe description");
		if (c->ndescs == 1 && p->tok.kind == TOK_IDENT && word.line == c->pos.line && !*c->descs[0].func)
			diag_hint(p->diag, "if \"%s\" is meant as a type, it is not known", c->descs[0].name);
	} else if (p->spec == D_SPEC_FILE) {
		parse_error(p, c->pos, "D_SYNTAX", "expected predicate and/or actions following probe description");
	}
	if (c->ndescs)
		add_item(p, D_ITEM_CLAUSE)->clause = c;
}

/* --- inlines, translators, providers ----------------------------------------------------------------- */

/* inline = "inline" specifiers declarator "=" assignment ";" */
static void parse_inline(struct parser *p)
{
	struct d_inline *inl = arena_new_of(p->arena, struct d_inline);
	const struct type *type;
	uint64_t value;

	next(p);
	if (!parse_inline_head(p, inl) || !expect(p, TOK_ASSIGN))
		return;
	inl->expr = parse_assign(p);
	expect(p, TOK_SEMICOLON);
	if (p->failed)
		return;
	if (!inl->assoc && type_is_integer(inl->type) && const_value(p->prog, inl->expr, &value, &type)) {
		inl->is_const = true;
		inl->value = value;
		inl->value_type = type;
	}
	add_item(p, D_ITEM_INLINE)->inl = inl;
}

/* translator_member = identifier "=" assignment ";" */
static void parse_translator_member(struct parser *p, struct d_xlator *x)
{
	struct d_xlator_member *m;
	struct d_token t;
	uint64_t off;

	if (peek(p) != TOK_IDENT) {
		syntax(p, "a member's name or }");
		return;
	}
	t = next(p);
	if (type_is_complete(x->out) && !type_find_member(x->out, t.str, &off))
		parse_error(p, t.pos, "D_XLATE_MEMB", "translator member %s is not a member of %s", t.str,
			    type_text(p->arena, x->out));
	x->members = arena_grow(p->arena, x->members, &x->members_cap, x->nmembers, sizeof(*x->members));
	m = &x->members[x->nmembers++];
	memset(m, 0, sizeof(*m));
	m->pos = t.pos;
	m->name = t.str;
	expect(p, TOK_ASSIGN);
	m->expr = parse_assign(p);
	expect(p, TOK_SEMICOLON);
}

/* translator = "translator" type_name "<" parameter ">" "{" translator_member* "}" ";" */
static void parse_translator(struct parser *p)
{
	struct d_xlator *x = arena_new_of(p->arena, struct d_xlator);
	struct d_param in;

	next(p);
	x->pos = here(p);
	x->lazy = p->prog->state->in_lib;
	x->out = parse_type_name(p);
	if (!p->failed && !type_is_sou(x->out))
		parse_error(p, x->pos, "D_XLATE_SOU", "translator output type must be a struct or union");
	else if (!p->failed && !type_is_complete(x->out))
		parse_error(p, x->pos, "D_XLATE_SOU", "incomplete struct/union/enum %s", type_text(p->arena, x->out));
	expect(p, TOK_LT);
	parse_one_param(p, &in);
	x->in = in.type;
	x->param = in.name;
	if (!p->failed && !in.name)
		syntax(p, "a name for what is translated");
	expect(p, TOK_GT);
	expect(p, TOK_LBRACE);
	while (peek(p) != TOK_RBRACE && !p->failed) {
		parse_translator_member(p, x);
		if (p->failed) {
			recover(p, UNTIL_STMT);
			if (peek(p) == TOK_EOF)
				syntax(p, "}");
		}
	}
	expect(p, TOK_RBRACE);
	expect(p, TOK_SEMICOLON);
	if (!p->failed)
		add_item(p, D_ITEM_XLATOR)->xlator = x;
}

/* Check a provider's or probe's name. */
static void check_prov_name(struct parser *p, const struct d_token *t, const char *kind)
{
	enum { MAX_NAME = 63 };

	if (strchr(t->str, '`'))
		parse_error(p, t->pos, "D_PROV_BADNAME", "%s name may not contain scoping operator: %s", kind, t->str);
	else if (t->len > MAX_NAME)
		parse_error(p, t->pos, "D_PROV_BADNAME", "%s name may not exceed %d characters: %s", kind, MAX_NAME,
			    t->str);
}

/* name = identifier ("-" identifier)*, as scripts write what C calls a__b: *t becomes the whole of it */
static void parse_dashes(struct parser *p, struct d_token *t)
{
	struct d_token part;

	while (accept(p, TOK_SUB)) {
		if (peek(p) != TOK_IDENT) {
			syntax(p, "the rest of a probe's name");
			return;
		}
		part = next(p);
		t->str = arena_printf(p->arena, "%s-%s", t->str, part.str);
		t->len = strlen(t->str);
	}
}

/* probe = "probe" name "(" parameters ")" (":" "(" parameters ")")? ";" */
static void parse_probe(struct parser *p, struct d_provider *prov)
{
	enum { MAX_ARGS = 255 };
	struct d_probe_def *pr;
	struct d_token t;
	size_t i;

	if (peek(p) != KEY_PROBE) {
		syntax(p, "probe or }");
		return;
	}
	next(p);
	if (peek(p) != TOK_IDENT) {
		syntax(p, "a probe's name");
		return;
	}
	t = next(p);
	parse_dashes(p, &t);
	check_prov_name(p, &t, "probe");
	for (i = 0; i < prov->nprobes; i++)
		if (!strcmp(prov->probes[i].name, t.str)) {
			parse_error(p, t.pos, "D_PROV_PRDUP", "probe redeclared: %s", t.str);
			break;
		}
	prov->probes = arena_grow(p->arena, prov->probes, &prov->probes_cap, prov->nprobes, sizeof(*prov->probes));
	pr = &prov->probes[prov->nprobes++];
	memset(pr, 0, sizeof(*pr));
	pr->pos = t.pos;
	pr->name = t.str;
	parse_probe_params(p, &pr->args, NULL);
	if (accept(p, TOK_COLON)) {
		pr->has_xargs = true;
		parse_probe_params(p, &pr->xargs, &pr->args);
	} else {
		pr->xargs = pr->args;
	}
	if (pr->args.n > MAX_ARGS || pr->xargs.n > MAX_ARGS)
		parse_error(p, t.pos, "D_PROV_PRARGLEN", "probe %s prototype exceeds %d parameters", pr->name, MAX_ARGS);
	expect(p, TOK_SEMICOLON);
}

/* provider = "provider" identifier "{" probe* "}" ";" */
static void parse_provider(struct parser *p)
{
	struct d_provider *prov = arena_new_of(p->arena, struct d_provider);
	struct d_token t;

	next(p);
	if (peek(p) != TOK_IDENT) {
		syntax(p, "a provider's name");
		return;
	}
	t = next(p);
	prov->pos = t.pos;
	prov->name = t.str;
	check_prov_name(p, &t, "provider");
	if (isdigit((unsigned char)t.str[t.len - 1]))
		parse_error(p, t.pos, "D_PROV_BADNAME", "provider name may not end with a digit: %s", t.str);
	expect(p, TOK_LBRACE);
	while (peek(p) != TOK_RBRACE && !p->failed) {
		parse_probe(p, prov);
		if (p->failed) {
			recover(p, UNTIL_STMT);
			p->nest = 0;
			if (peek(p) == TOK_EOF)
				syntax(p, "}");
		}
	}
	expect(p, TOK_RBRACE);
	expect(p, TOK_SEMICOLON);
	if (!p->failed)
		add_item(p, D_ITEM_PROVIDER)->provider = prov;
}

/* --- programs ---------------------------------------------------------------------------------------- */

/* item = clause | inline | translator | provider | declaration */
static void parse_item(struct parser *p)
{
	if (lex_at_desc(&p->lex)) {
		parse_clause(p);
		return;
	}
	switch (peek(p)) {
	case KEY_INLINE:
		parse_inline(p);
		break;
	case KEY_TRANSLATOR:
		parse_translator(p);
		break;
	case KEY_PROVIDER:
		parse_provider(p);
		break;
	case KEY_AUTO:
	case KEY_REGISTER:
	case KEY_STATIC:
	case KEY_EXTERN:
	case KEY_TYPEDEF:
	case KEY_SELF:
	case KEY_THIS:
		parse_declaration(p);
		break;
	default:
		if (at_type(p))
			parse_declaration(p);
		else
			syntax(p, "a probe description or a declaration");
		break;
	}
}

/* program = item* */
static void parse_program(struct parser *p)
{
	for (;;) {
		p->have_tok = false;	/* can only be the end: items read no token beyond their own */
		if (!lex_space(&p->lex) || p->lex.p >= p->lex.end)
			return;
		parse_item(p);
		if (p->failed) {
			recover(p, UNTIL_ITEM);
			p->nest = 0;
			p->lex.pred = false;
		}
	}
}

struct d_prog *d_prog_new(struct arena *a, struct diag *diag, const struct d_macros *m)
{
	struct d_prog *p = arena_new_of(a, struct d_prog);

	p->arena = a;
	p->types = types_new(a);
	p->state = arena_new_of(a, struct d_state);
	p->state->diag = diag;
	p->state->macros.m = *m;
	p->state->macros.used = arena_alloc(a, m->argc + 1);
	return p;
}

bool d_parse(struct d_prog *prog, const struct source *src, enum d_spec spec)
{
	unsigned int errors = prog->state->diag->errors;
	struct parser p;

	parser_init(&p, prog, src, spec);
	parse_program(&p);
	return prog->state->diag->errors == errors;
}

bool d_parse_end(struct d_prog *prog)
{
	const struct d_macro_state *s = &prog->state->macros;
	struct src_pos nowhere = { 0 };
	bool ok = true;
	unsigned int i;

	for (i = 1; i < s->m.argc && !s->m.argref; i++) {
		if (s->used[i])
			continue;
		diag_error(prog->state->diag, nowhere, "D_MACRO_UNUSED",
			   "extraneous argument '%s' ($%u is not referenced)", s->m.argv[i], i);
		ok = false;
	}
	return ok;
}

const struct type *d_parse_type(struct d_prog *prog, const char *text)
{
	struct source src = { .name = "type", .text = text, .len = strlen(text) };
	struct diag none;
	const struct type *type;
	struct parser p;

	diag_init(&none, prog->arena);
	parser_init(&p, prog, &src, D_SPEC_FILE);
	p.diag = p.lex.diag = &none;
	type = parse_type_name(&p);
	return peek(&p) == TOK_EOF && !none.errors ? type : NULL;
}
