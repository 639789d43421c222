#include "stp/lex.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/strbuf.h"

/* An argument's text may name further arguments; these limits end a recursion. */
enum { MAX_PASTES = 1000, MAX_PASTED_BYTES = 1 << 20 };

static const char *const keywords[] = {
	"probe", "global", "private", "function", "if", "else", "for", "foreach", "in", "limit", "return",
	"delete", "while", "break", "continue", "next", "string", "long", "try", "catch",
};

/* Longest first. */
static const char *const operators[] = {
	"<<<", "<<=", ">>=", ">>>", "!=", "<=", ">=", "==", "=~", "!~", "+=", "-=", "*=", "/=", "%=", "&=", "^=",
	"|=", ".=", "&&", "||", "++", "--", "->", "<<", ">>", "%{", "%}", "%(", "%?", "%:", "%)",
};

struct lexer {
	struct arena *arena;
	const struct source *src;
	const struct stp_args *args;
	const char *p, *end;		/* what is left of the source */
	unsigned int line, col;		/* of *p */
	struct strbuf pasted;		/* text of arguments to be read before it, from @paste_at on */
	size_t paste_at;
	unsigned int npastes;
	struct strbuf text;		/* of the current token */
};

/* The character @k positions ahead, or -1 at the end. */
static int look(const struct lexer *l, size_t k)
{
	size_t left = l->pasted.len - l->paste_at;

	if (k < left)
		return (unsigned char)l->pasted.s[l->paste_at + k];
	k -= left;
	return k < (size_t)(l->end - l->p) ? (unsigned char)l->p[k] : -1;
}

static void skip(struct lexer *l)
{
	if (l->paste_at < l->pasted.len) {
		l->paste_at++;		/* an argument's tokens have the position of its name */
		return;
	}
	if (*l->p++ == '\n') {
		l->line++;
		l->col = 1;
	} else {
		l->col++;
	}
}

static int get(struct lexer *l)
{
	int c = look(l, 0);

	if (c >= 0)
		skip(l);
	return c;
}

static void skip_n(struct lexer *l, size_t n)
{
	while (n--)
		skip(l);
}

static bool is_name_start(int c)
{
	return c == '_' || c == '$' || c == '@' || (c < 128 && isalpha(c));
}

static bool is_name(int c)
{
	return c == '_' || c == '$' || (c >= 0 && c < 128 && isalnum(c));
}

static void skip_blanks(struct lexer *l)
{
	for (;;) {
		int c = look(l, 0);

		if (c == ' ' || (c >= '\t' && c <= '\r')) {
			skip(l);
		} else if (c == '#' || (c == '/' && look(l, 1) == '/')) {
			while ((c = look(l, 0)) >= 0 && c != '\n')
				skip(l);
		} else if (c == '/' && look(l, 1) == '*') {
			skip_n(l, 2);
			while (look(l, 0) >= 0 && !(look(l, 0) == '*' && look(l, 1) == '/'))
				skip(l);
			if (look(l, 0) >= 0)
				skip_n(l, 2);
		} else {
			return;
		}
	}
}

static void junk(struct lexer *l, struct stp_tok *t, const char *why)
{
	strbuf_clear(&l->text);
	strbuf_puts(&l->text, why);
	t->kind = STP_JUNK;
}

/* Insert the text of an argument, as a string literal if @quoted, before the rest of the source. */
static void paste(struct lexer *l, const char *s, bool quoted)
{
	struct strbuf b = {0};
	size_t left = l->pasted.len - l->paste_at;

	if (quoted)
		strbuf_putc(&b, '"');
	for (; *s; s++) {
		if (quoted && (*s == '"' || *s == '\\'))
			strbuf_putc(&b, '\\');
		if (quoted && *s == '\n')
			strbuf_puts(&b, "\\n");
		else
			strbuf_putc(&b, *s);
	}
	if (quoted)
		strbuf_putc(&b, '"');
	if (left)
		strbuf_add(&b, l->pasted.s + l->paste_at, left);
	strbuf_fini(&l->pasted);
	l->pasted = b;
	l->paste_at = 0;
}

/* Read $1 @1 $# @# at the start of a token.  False: it is none of them, or *t says what is wrong. */
static bool read_argument(struct lexer *l, struct stp_tok *t)
{
	bool quoted = look(l, 0) == '@';
	unsigned long n = 0;
	size_t i = 1;

	if (look(l, 1) == '#') {
		skip_n(l, 2);
		paste(l, arena_printf(l->arena, "%zu", l->args->n), quoted);
		return true;
	}
	for (; look(l, i) >= '0' && look(l, i) <= '9'; i++)
		if (n < 1000000)
			n = n * 10 + (unsigned long)(look(l, i) - '0');
	skip_n(l, i);
	if (!n || n > l->args->n) {
		junk(l, t, l->args->n ? arena_printf(l->arena, "command line argument out of range [1-%zu]",
						     l->args->n) :
					"command line argument out of range (none were given)");
		return false;
	}
	if (++l->npastes > MAX_PASTES || l->pasted.len > MAX_PASTED_BYTES) {
		junk(l, t, "command line arguments name each other without end");
		return false;
	}
	paste(l, l->args->v[n - 1], quoted);
	return true;
}

static int hex_value(int c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c |= 0x20;
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Read an escape; the backslash is consumed. */
static void read_escape(struct lexer *l)
{
	static const char names[] = "abtnvfr", codes[] = "\a\b\t\n\v\f\r";
	int c = get(l), v = 0;
	const char *at;

	if (c >= '0' && c <= '7') {
		v = c - '0';
		for (int i = 0; i < 2 && look(l, 0) >= '0' && look(l, 0) <= '7'; i++)
			v = v * 8 + get(l) - '0';
		strbuf_putc(&l->text, (char)v);
	} else if (c == 'x' && hex_value(look(l, 0)) >= 0) {
		for (int i = 0; i < 2 && hex_value(look(l, 0)) >= 0; i++)
			v = v * 16 + hex_value(get(l));
		strbuf_putc(&l->text, (char)v);
	} else if (c > 0 && (at = strchr(names, c))) {
		strbuf_putc(&l->text, codes[at - names]);
	} else if (c >= 0) {
		strbuf_putc(&l->text, (char)c);
	}
}

/* string := '"' { character | '\' escape } '"' */
static void read_string(struct lexer *l, struct stp_tok *t)
{
	t->kind = STP_STRING;
	skip(l);
	for (;;) {
		int c = look(l, 0);

		if (c < 0 || c == '\n') {
			junk(l, t, "Could not find matching closing quote");
			return;
		}
		skip(l);
		if (c == '"')
			return;
		if (c == '\\')
			read_escape(l);
		else
			strbuf_putc(&l->text, (char)c);
	}
}

/* embedded := '%{' anything '%}' */
static void read_embedded(struct lexer *l, struct stp_tok *t)
{
	t->kind = STP_EMBEDDED;
	skip_n(l, 2);
	while (look(l, 0) >= 0) {
		if (look(l, 0) == '%' && look(l, 1) == '}') {
			skip_n(l, 2);
			return;
		}
		strbuf_putc(&l->text, (char)get(l));
	}
	junk(l, t, "Could not find matching '%}' to close embedded function block");
}

static void read_op(struct lexer *l, struct stp_tok *t)
{
	t->kind = STP_OP;
	for (size_t i = 0; i < sizeof(operators) / sizeof(operators[0]); i++) {
		size_t n = strlen(operators[i]), k = 0;

		while (k < n && look(l, k) == operators[i][k])
			k++;
		if (k < n)
			continue;
		strbuf_puts(&l->text, operators[i]);
		skip_n(l, n);
		return;
	}
	strbuf_putc(&l->text, (char)get(l));
}

static bool is_keyword(const char *s)
{
	for (size_t i = 0; i < sizeof(keywords) / sizeof(keywords[0]); i++)
		if (!strcmp(s, keywords[i]))
			return true;
	return false;
}

static void read_token(struct lexer *l, struct stp_tok *t)
{
	int c;

	for (;;) {
		skip_blanks(l);
		t->pos = (struct src_pos){ .src = l->src, .line = l->line, .col = l->col };
		c = look(l, 0);
		if ((c != '$' && c != '@') || !(look(l, 1) == '#' || (look(l, 1) >= '0' && look(l, 1) <= '9')))
			break;
		if (!read_argument(l, t))
			return;
	}
	if (c < 0) {
		t->kind = STP_EOF;	/* has the last token's position */
	} else if (is_name_start(c)) {
		strbuf_putc(&l->text, (char)get(l));
		while (is_name(look(l, 0)))
			strbuf_putc(&l->text, (char)get(l));
		t->kind = c == '@' ? STP_OP : is_keyword(l->text.s) ? STP_KEYWORD : STP_IDENT;
	} else if (c >= '0' && c <= '9') {
		while (look(l, 0) < 128 && isalnum(look(l, 0)))
			strbuf_putc(&l->text, (char)get(l));
		t->kind = STP_NUMBER;
	} else if (c == '"') {
		read_string(l, t);
	} else if (c == '%' && look(l, 1) == '{') {
		read_embedded(l, t);
	} else {
		read_op(l, t);
	}
}

void stp_toks_add(struct arena *a, struct stp_toks *to, const struct stp_tok *t)
{
	to->v = arena_grow(a, to->v, &to->cap, to->n, sizeof(*to->v));
	to->v[to->n++] = *t;
}

void stp_lex(struct arena *a, const struct source *src, const struct stp_args *args, struct stp_toks *ret)
{
	struct lexer l = {
		.arena = a, .src = src, .args = args, .p = src->text, .end = src->text + src->len, .line = 1, .col = 1,
	};
	struct stp_tok t;

	do {
		t = (struct stp_tok){0};
		strbuf_clear(&l.text);
		read_token(&l, &t);
		if (t.kind == STP_EOF && ret->n)
			t.pos = ret->v[ret->n - 1].pos;
		t.len = l.text.len;
		t.text = arena_strndup(a, strbuf_str(&l.text), l.text.len);
		stp_toks_add(a, ret, &t);
	} while (t.kind != STP_EOF);
	strbuf_fini(&l.pasted);
	strbuf_fini(&l.text);
}

const char *stp_tok_text(struct arena *a, const struct stp_tok *t)
{
	static const char *const names[] = {
		[STP_EOF] = "<input> EOF", [STP_JUNK] = "junk", [STP_IDENT] = "identifier", [STP_KEYWORD] = "keyword",
		[STP_OP] = "operator", [STP_STRING] = "string", [STP_NUMBER] = "number",
		[STP_EMBEDDED] = "embedded-code",
	};

	switch (t->kind) {
	case STP_EOF:
	case STP_EMBEDDED:
	case STP_KEYWORD:
		return names[t->kind];
	case STP_JUNK:
		return "junk ''";
	default:
		return arena_printf(a, "%s '%s'", names[t->kind], t->text);
	}
}
