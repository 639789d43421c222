/*
 * D's lexer: from text to tokens.
 *
 * Written by hand, because three things depend on context: a '/' ends a predicate when '{', ';' or the end follows,
 * and divides otherwise; probe descriptions allow other characters (syscall::open*:entry); a word after '.' or '->'
 * is a member's name even when it is a keyword.
 *
 * Guide: "Program Structure" and "Types, Operators, and Expressions".  Comments do not nest; // is a syntax error.
 */
#include "d/lex.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/strbuf.h"
#include "d/lib.h"
#include "lang/diag.h"

static const struct {
	enum d_tok kind;
	const char *text;
} puncts[] = {
#define D_PUNCT(NAME, text) { TOK_##NAME, text },
#include "d/tokens.def"
}, keywords[] = {
#define D_KEYWORD(NAME, text) { KEY_##NAME, text },
#include "d/tokens.def"
};

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

const char *tok_text(enum d_tok kind)
{
	static const char *const texts[TOK_MAX] = {
		[TOK_EOF] = "the end of the program",
		[TOK_FAIL] = "something else",
		[TOK_IDENT] = "a name",
		[TOK_AGG] = "an aggregation",
		[TOK_INT] = "an integer",
		[TOK_STR] = "a string",
		[TOK_END_PRED] = "/",
#define D_PUNCT(NAME, text) [TOK_##NAME] = text,
#include "d/tokens.def"
#define D_KEYWORD(NAME, text) [KEY_##NAME] = text,
#include "d/tokens.def"
	};

	return texts[kind];
}

const char *tok_show(const struct d_lex *l, const struct d_token *t)
{
	const int max = 40;
	int len = (int)(t->end - t->start < max ? t->end - t->start : max);
	char *s, *p;

	if (t->kind == TOK_EOF)
		return "the end of the program";
	s = arena_printf(l->prog->arena, "\"%.*s%s\"", len, t->start, t->end - t->start > max ? "..." : "");
	for (p = s; *p; p++)
		if (iscntrl((unsigned char)*p))
			*p = '?';
	return s;
}

void lex_init(struct d_lex *l, struct d_prog *prog, struct diag *diag, struct d_macro_state *macros,
	      const struct source *src)
{
	memset(l, 0, sizeof(*l));
	l->prog = prog;
	l->diag = diag;
	l->macros = macros;
	l->text = src;
	l->src = src->orig ? src->orig : src;
	l->p = l->line_start = src->text;
	l->end = src->text + src->len;
	l->line = 1;
}

struct src_pos lex_pos(const struct d_lex *l, const char *p)
{
	return (struct src_pos){ l->src, l->line, (unsigned int)(p - l->line_start) + 1 };
}

static void error(struct d_lex *l, const char *at, const char *tag, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));

static void error(struct d_lex *l, const char *at, const char *tag, const char *fmt, ...)
{
	va_list ap;

	if (l->quiet)
		return;
	va_start(ap, fmt);
	diag_verror(l->diag, lex_pos(l, at), tag, fmt, ap);
	va_end(ap);
}

static void hint(struct d_lex *l, const char *text)
{
	if (!l->quiet)
		diag_hint(l->diag, "%s", text);
}

/* --- characters -------------------------------------------------------------------------------------- */

static int at(const struct d_lex *l, size_t n)
{
	return (size_t)(l->end - l->p) > n ? (unsigned char)l->p[n] : -1;
}

static bool is_blank(int c)
{
	return c == ' ' || (c >= '\t' && c <= '\r');
}

static bool is_word_start(int c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '`';
}

static bool is_digit(int c)
{
	return c >= '0' && c <= '9';
}

static bool is_word(int c)
{
	return is_word_start(c) || is_digit(c);
}

static bool is_desc_start(int c)
{
	return c > 0 && ((is_word_start(c) && c != '`') || strchr("-$:.?*\\[]!", c));
}

static bool is_desc(int c)
{
	return c > 0 && (is_desc_start(c) || is_digit(c) || strchr("`@+%<>", c) || c >= 0x80);
}

static void newline(struct d_lex *l)
{
	l->p++;
	l->line++;
	l->line_start = l->p;
}

/* --- between tokens ---------------------------------------------------------------------------------- */

static void skip_line(struct d_lex *l)
{
	const char *nl = memchr(l->p, '\n', (size_t)(l->end - l->p));

	l->p = nl ? nl : l->end;
}

static bool at_comment(const struct d_lex *l)
{
	return at(l, 0) == '/' && (at(l, 1) == '*' || at(l, 1) == '/');
}

/* Skip the comment that begins here. */
static bool skip_comment(struct d_lex *l)
{
	struct d_lex start = *l;

	if (at(l, 1) == '/') {
		skip_line(l);
		return true;
	}
	l->p += 2;
	for (;;) {
		if (l->p >= l->end) {
			error(&start, start.p, "D_SYNTAX", "the comment that begins here has no */");
			return false;
		}
		if (at(l, 0) == '*' && at(l, 1) == '/') {
			l->p += 2;
			return true;
		}
		if (at(l, 0) == '/' && at(l, 1) == '*') {
			error(l, l->p, "D_SYNTAX", "/* encountered inside a comment");
			l->p++;
		}
		if (at(l, 0) == '\n')
			newline(l);
		else
			l->p++;
	}
}

static bool is_line_start(const struct d_lex *l)
{
	const char *p;

	for (p = l->line_start; p < l->p; p++)
		if (!is_blank((unsigned char)*p))
			return false;
	return true;
}

bool lex_space(struct d_lex *l)
{
	while (l->p < l->end) {
		int c = at(l, 0);

		if (c == '\n') {
			newline(l);
		} else if (is_blank(c)) {
			l->p++;
		} else if (c == '\\' && at(l, 1) == '\n') {
			l->p++;
			newline(l);
		} else if (at_comment(l)) {
			if (!skip_comment(l))
				return false;
		} else if (c == '#' && is_line_start(l)) {
			if (at(l, 1) == '!') {
				skip_line(l);
			} else {
				l->p++;
				lex_control(l);
			}
		} else {
			return true;
		}
	}
	return true;
}

/* Does the '/' at hand end a predicate?  Looks past blanks and comments, reports nothing. */
static bool ends_pred(const struct d_lex *at_slash)
{
	struct d_lex l = *at_slash;

	l.quiet = true;
	for (l.p++; l.p < l.end;) {
		if (is_blank(at(&l, 0)))
			l.p++;
		else if (!at_comment(&l) || !skip_comment(&l))
			break;
	}
	return l.p >= l.end || at(&l, 0) == '{' || at(&l, 0) == ';' || at(&l, 0) == '/';
}

/* --- constants --------------------------------------------------------------------------------------- */

static int digit_value(int c)
{
	if (is_digit(c))
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	if (c >= 'A' && c <= 'F')
		return c - 'A' + 10;
	return 99;
}

enum int_error { INT_OK, INT_OFLOW, INT_DIGIT };

/* Read the integer constant of @len characters at @s, which begins with a digit.  *bad: the offending character. */
static enum int_error read_int(const char *s, size_t len, struct d_token *t, int *bad)
{
	bool oflow = false;
	int base = 10;
	size_t i = 0;

	t->decimal = s[0] != '0';
	t->value = 0;
	if (len > 2 && s[0] == '0' && (s[1] == 'x' || s[1] == 'X')) {
		base = 16;
		i = 2;
	} else if (s[0] == '0') {
		base = 8;
	}
	for (; i < len && digit_value(s[i]) < base; i++)
		if (__builtin_mul_overflow(t->value, (uint64_t)base, &t->value) ||
		    __builtin_add_overflow(t->value, (uint64_t)digit_value(s[i]), &t->value))
			oflow = true;
	for (; i < len; i++) {
		if ((s[i] == 'u' || s[i] == 'U') && !t->uns)
			t->uns = true;
		else if ((s[i] == 'l' || s[i] == 'L') && (!t->longs || (t->longs == 1 && s[i] == s[i - 1])))
			t->longs++;
		else
			break;
	}
	*bad = i < len ? (unsigned char)s[i] : 0;
	return i < len ? INT_DIGIT : oflow ? INT_OFLOW : INT_OK;
}

static void lex_int(struct d_lex *l, struct d_token *t)
{
	size_t len = 0;
	int bad;

	while (is_word(at(l, len)) && at(l, len) != '`')
		len++;
	t->kind = TOK_INT;
	if ((at(l, len) == '.' && at(l, len + 1) != '.') ||
	    (at(l, 1) != 'x' && at(l, 1) != 'X' && is_digit(at(l, 0)) && len > 1 &&
	     (l->p[len - 1] == 'e' || l->p[len - 1] == 'E') && (at(l, len) == '-' || at(l, len) == '+'))) {
		error(l, l->p, "D_SYNTAX", "floating-point constants are not permitted");
		while (is_word(at(l, len)) || at(l, len) == '.' ||
		       ((at(l, len) == '-' || at(l, len) == '+') && (l->p[len - 1] | 0x20) == 'e'))
			len++;
		l->p += len;
		return;
	}
	switch (read_int(l->p, len, t, &bad)) {
	case INT_OK:
		break;
	case INT_OFLOW:
		error(l, l->p, "D_INT_OFLOW", "constant %.*s results in integer overflow", (int)len, l->p);
		break;
	case INT_DIGIT:
		error(l, l->p, "D_INT_DIGIT", "constant %.*s contains invalid digit %c", (int)(len > 60 ? 60 : len),
		      l->p, bad);
		break;
	}
	l->p += len;
}

/*
 * Append the characters from @s to @e to @out, with escapes replaced.  As in DTrace an unknown escape keeps its
 * backslash, and so do \' and \?.
 */
static void unescape(struct strbuf *out, const char *s, const char *e)
{
	static const char from[] = "abfnrtv\"\\", to[] = "\a\b\f\n\r\t\v\"\\";
	const char *which;
	unsigned int n, v;

	while (s < e) {
		if (*s != '\\' || s + 1 == e) {
			strbuf_putc(out, *s++);
			continue;
		}
		s++;
		if (*s >= '0' && *s <= '7') {
			for (v = n = 0; n < 3 && s < e && *s >= '0' && *s <= '7'; n++)
				v = v * 8 + (unsigned int)(*s++ - '0');
			strbuf_putc(out, (char)v);
		} else if (*s == 'x' && s + 1 < e && digit_value(s[1]) < 16) {
			for (v = 0, s++; s < e && digit_value(*s) < 16; s++)
				v = (v << 4 | (unsigned int)digit_value(*s)) & 0xff;
			strbuf_putc(out, (char)v);
		} else if (*s && (which = strchr(from, *s))) {
			strbuf_putc(out, to[which - from]);
			s++;
		} else {
			strbuf_putc(out, '\\');
		}
	}
}

static void set_str(struct d_lex *l, struct d_token *t, const char *s, const char *e)
{
	struct strbuf b = { 0 };

	unescape(&b, s, e);
	t->kind = TOK_STR;
	t->str = arena_strndup(l->prog->arena, strbuf_str(&b), b.len);
	t->len = b.len;
	strbuf_fini(&b);
}

/* Skip a quoted text.  True: the lexer is behind its second quote. */
static bool lex_quoted(struct d_lex *l, struct d_token *t, const char *nl_tag, const char *what)
{
	const char *start = l->p, quote = *start;

	for (l->p++; l->p < l->end && *l->p != quote && *l->p != '\n'; l->p++)
		if (*l->p == '\\' && l->p + 1 < l->end && l->p[1] != '\n')
			l->p++;
	if (l->p < l->end && *l->p == quote) {
		l->p++;
		return true;
	}
	if (l->p < l->end)
		error(l, start, nl_tag, "newline encountered in %s", what);
	else
		error(l, start, "D_SYNTAX", "%s has no closing %c", what, quote);
	t->kind = TOK_FAIL;
	return false;
}

static void lex_char(struct d_lex *l, struct d_token *t)
{
	const char *start = l->p;
	struct strbuf b = { 0 };
	size_t i;

	if (!lex_quoted(l, t, "D_CHR_NL", "character constant"))
		return;
	t->kind = TOK_INT;
	t->decimal = true;
	unescape(&b, start + 1, l->p - 1);
	if (!b.len)
		error(l, start, "D_CHR_NULL", "empty character constant");
	else if (b.len > sizeof(t->value))
		error(l, start, "D_CHR_OFLOW", "character constant is too long");
	else
		for (i = 0; i < b.len; i++)
			t->value = t->value << 8 | (unsigned char)b.s[i];
	strbuf_fini(&b);
}

/* --- words and macros -------------------------------------------------------------------------------- */

static void set_word(struct d_lex *l, struct d_token *t, const char *s, size_t len, bool keyword)
{
	size_t i;

	t->kind = TOK_IDENT;
	for (i = 0; keyword && i < COUNT(keywords); i++)
		if (*keywords[i].text == *s && strlen(keywords[i].text) == len && !memcmp(keywords[i].text, s, len))
			t->kind = keywords[i].kind;
	t->str = arena_strndup(l->prog->arena, s, len);
	t->len = len;
}

/* Make a token of a macro argument's text: an integer, a name or else a string. */
static void set_macro(struct d_lex *l, struct d_token *t, const char *v)
{
	size_t len = strlen(v), sign = v[0] == '-' || v[0] == '+', i;
	int bad;

	t->from_macro = true;
	if (is_digit((unsigned char)v[sign])) {
		switch (read_int(v + sign, len - sign, t, &bad)) {
		case INT_OFLOW:
			error(l, t->start, "D_MACRO_OFLOW", "macro argument %.*s constant %s results in integer overflow",
			      (int)(t->end - t->start), t->start, v);
			/* fallthrough */
		case INT_OK:
			t->kind = TOK_INT;
			if (v[0] == '-')
				t->value = -t->value;
			return;
		case INT_DIGIT:	/* "3rd" */
			t->uns = false;
			t->longs = 0;
			break;
		}
	}
	for (i = 0; i < len && (i ? is_word((unsigned char)v[i]) : is_word_start((unsigned char)v[i])); i++)
		;
	if (len && i == len) {
		set_word(l, t, v, len, true);
		return;
	}
	if (len > 1 && v[0] == '"' && v[len - 1] == '"') {
		v++;
		len -= 2;
	}
	set_str(l, t, v, v + len);
}

static void lex_macro(struct d_lex *l, struct d_token *t)
{
	const char *start = l->p, *text, *name, *why = NULL;
	bool string = at(l, 1) == '$';
	size_t n = string ? 2 : 1, len = 0;

	if (is_digit(at(l, n)))
		while (is_digit(at(l, n + len)))
			len++;
	else
		while (is_word(at(l, n + len)) && at(l, n + len) != '`')
			len++;
	l->p += n + len;
	t->end = l->p;
	if (!len) {
		error(l, start, "D_SYNTAX", "syntax error near \"$\"");
		t->kind = TOK_FAIL;
		return;
	}
	name = arena_strndup(l->prog->arena, start + n, len);
	text = macro_text(l, name, false, &why);
	if (!text) {
		error(l, start, "D_MACRO_UNDEF", "macro %s %.*s is not defined",
		      is_digit((unsigned char)*name) ? "argument" : "variable", (int)(t->end - start), start);
		if (why)
			hint(l, why);
		t->kind = string ? TOK_STR : TOK_INT;
		t->str = "";
		t->decimal = true;
		t->from_macro = true;
	} else if (string) {
		t->from_macro = true;
		set_str(l, t, text, text + strlen(text));
	} else {
		set_macro(l, t, *text ? text : "0");
	}
}

/* --- tokens ------------------------------------------------------------------------------------------ */

/* Report a run of characters that begin no token. */
static void lex_bad(struct d_lex *l, struct d_token *t)
{
	const char *start = l->p;
	int c = at(l, 0);

	t->kind = TOK_FAIL;
	if (c >= 0x80 || (c < ' ')) {
		while (l->p < l->end && (at(l, 0) >= 0x80 || (at(l, 0) < ' ' && !is_blank(at(l, 0)))))
			l->p++;
		error(l, start, "D_SYNTAX", "syntax error near byte 0x%02x", (unsigned int)c);
		if (c >= 0x80)
			hint(l, "outside strings and comments D knows ASCII only");
		return;
	}
	l->p++;
	error(l, start, "D_SYNTAX", "syntax error near \"%c\"", c);
	if (c == '#')
		hint(l, "control lines such as #pragma begin with the # as their first character");
}

static bool lex_punct(struct d_lex *l, struct d_token *t)
{
	size_t i, len;

	for (i = 0; i < COUNT(puncts); i++) {
		if (*puncts[i].text != *l->p)
			continue;
		len = strlen(puncts[i].text);
		if ((size_t)(l->end - l->p) >= len && !memcmp(l->p, puncts[i].text, len)) {
			t->kind = puncts[i].kind;
			l->p += len;
			return true;
		}
	}
	return false;
}

void lex_token(struct d_lex *l, struct d_token *t)
{
	bool member = l->member;
	size_t len = 0;
	int c;

	l->member = false;
	memset(t, 0, sizeof(*t));
	if (!lex_space(l)) {
		t->kind = TOK_FAIL;
		t->pos = lex_pos(l, l->p);
		t->start = t->end = l->p;
		return;
	}
	t->pos = lex_pos(l, l->p);
	t->start = l->p;
	c = at(l, 0);
	if (c < 0) {
		t->kind = TOK_EOF;
	} else if (is_word_start(c)) {
		while (is_word(at(l, len)))
			len++;
		set_word(l, t, l->p, len, !member);
		l->p += len;
	} else if (is_digit(c) || (c == '.' && is_digit(at(l, 1)))) {
		lex_int(l, t);
	} else if (c == '"') {
		if (lex_quoted(l, t, "D_STR_NL", "string literal"))
			set_str(l, t, t->start + 1, l->p - 1);
	} else if (c == '\'') {
		lex_char(l, t);
	} else if (c == '$') {
		lex_macro(l, t);
	} else if (c == '@') {
		l->p++;
		if (is_word_start(at(l, 0)) && at(l, 0) != '`')
			while (is_word(at(l, len)) && at(l, len) != '`')
				len++;
		t->kind = TOK_AGG;
		t->str = arena_strndup(l->prog->arena, l->p, len);
		t->len = len;
		l->p += len;
	} else if (c == '/' && l->pred && ends_pred(l)) {
		t->kind = TOK_END_PRED;
		l->p++;
	} else if (c == '/' && at(l, 1) == '/') {
		error(l, l->p, "D_SYNTAX", "syntax error near \"//\"");
		hint(l, "comments are written /* ... */");
		t->kind = TOK_FAIL;
		l->p += 2;
	} else if (lex_punct(l, t)) {
		l->member = t->kind == TOK_DOT || t->kind == TOK_ARROW;
	} else {
		lex_bad(l, t);
	}
	t->end = l->p;
}

/* --- probe descriptions ------------------------------------------------------------------------------ */

static bool is_decl_keyword(const char *s, size_t len)
{
	static const enum d_tok kinds[] = {
		KEY_AUTO, KEY_CHAR, KEY_CONST, KEY_COUNTER, KEY_DOUBLE, KEY_ENUM, KEY_EXTERN, KEY_FLOAT,
		KEY_IMPORT, KEY_INLINE, KEY_INT, KEY_LONG, KEY_PROVIDER, KEY_REGISTER, KEY_RESTRICT, KEY_SELF,
		KEY_SHORT, KEY_SIGNED, KEY_STATIC, KEY_STRING, KEY_STRUCT, KEY_THIS, KEY_TRANSLATOR,
		KEY_TYPEDEF, KEY_UNION, KEY_UNSIGNED, KEY_USERLAND, KEY_VOID, KEY_VOLATILE,
	};
	size_t i;

	for (i = 0; i < COUNT(kinds); i++)
		if (strlen(tok_text(kinds[i])) == len && !memcmp(tok_text(kinds[i]), s, len))
			return true;
	return false;
}

bool lex_at_desc(const struct d_lex *l)
{
	size_t len = 0, word = 0;
	const char *name;

	if (is_digit(at(l, 0)))
		return true;
	if (!is_desc_start(at(l, 0)))
		return false;
	while (is_desc(at(l, len)))
		len++;
	while (word < len && is_word((unsigned char)l->p[word]))
		word++;
	if (word < len && l->p[word] != '*')	/* "int*x" begins a declaration, "int*:::entry" does not */
		return true;
	if (memchr(l->p, ':', len))
		return true;
	if (is_decl_keyword(l->p, word) || memchr(l->p, '`', word))
		return false;
	name = arena_strndup(l->prog->arena, l->p, word);
	if (!type_find_typedef(l->prog->types, name))
		d_libs_need(l->prog, name, D_LIB_TYPE);
	return !type_find_typedef(l->prog->types, name);
}

const char *lex_desc(struct d_lex *l, struct src_pos *pos)
{
	const char *start;

	lex_space(l);
	start = l->p;
	*pos = lex_pos(l, start);
	if (is_digit(at(l, 0)) || is_desc_start(at(l, 0)))
		while (is_desc(at(l, 0)))
			l->p++;
	return arena_strndup(l->prog->arena, start, (size_t)(l->p - start));
}
