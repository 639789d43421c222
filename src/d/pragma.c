/*
 * Control lines: #pragma D option quiet, #line 12 "x.d", # 12 "x.d", #error, #ident.
 *
 * cpp(1) writes "# 12 file" lines; they restore the positions in the user's file.  Directives that only cpp
 * understands (#include, #define, #if) are an error that says so.
 *
 * Guide: "Options and Tunables" (#pragma D option), "Stability" (attributes, binding), "Translators"
 * (depends_on).
 */
#include "d/lex.h"
#include "d/lib.h"
#include "d/parser.h"

#include <ctype.h>
#include <limits.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "d/attr.h"
#include "lang/diag.h"

enum { MAX_WORDS = 16 };

/* The words of a control line; a string is one word, without its quotes. */
struct line {
	struct d_lex *l;
	struct src_pos pos;	/* of the first word */
	const char *words[MAX_WORDS];
	bool quoted[MAX_WORDS];
	struct src_pos at[MAX_WORDS];
	size_t n;
	bool more;		/* there were more than MAX_WORDS */
};

static void error(const struct line *line, struct src_pos pos, const char *tag, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));

static void error(const struct line *line, struct src_pos pos, const char *tag, const char *fmt, ...)
{
	va_list ap;

	if (line->l->quiet)
		return;
	va_start(ap, fmt);
	diag_verror(line->l->diag, pos, tag, fmt, ap);
	va_end(ap);
}

/* Split the line into words; the lexer is then at the line's end.  False: a string does not end (reported). */
static bool read_words(struct line *line)
{
	struct d_lex *l = line->l;
	const char *p = l->p, *start, *eol = memchr(p, '\n', (size_t)(l->end - p));
	struct src_pos pos;
	bool quoted;

	if (!eol)
		eol = l->end;
	line->pos = lex_pos(l, p - 1);
	l->p = eol;
	for (;;) {
		while (p < eol && isspace((unsigned char)*p))
			p++;
		if (p == eol || (eol - p > 1 && p[0] == '/' && p[1] == '*'))
			break;
		pos = lex_pos(l, p);
		quoted = *p == '"';
		if (quoted) {
			for (start = ++p; p < eol && *p != '"'; p++)
				if (*p == '\\' && p + 1 < eol)
					p++;
			if (p == eol) {
				error(line, pos, "D_STR_NL", "newline encountered in string literal");
				return false;
			}
		} else {
			for (start = p; p < eol && !isspace((unsigned char)*p) && *p != '"'; p++)
				;
		}
		if (line->n < MAX_WORDS) {
			line->words[line->n] = arena_strndup(l->prog->arena, start, (size_t)(p - start));
			line->quoted[line->n] = quoted;
			line->at[line->n++] = pos;
		} else {
			line->more = true;
		}
		p += quoted;
	}
	return true;
}

static const char *join(const struct line *line, size_t from)
{
	const char *s = "";
	size_t i;

	for (i = from; i < line->n; i++)
		s = arena_printf(line->l->prog->arena, "%s%s%s", s, i > from ? " " : "", line->words[i]);
	return s;
}

static bool read_number(const char *s, unsigned int *ret)
{
	unsigned long n;
	char *end;

	if (!isdigit((unsigned char)*s))
		return false;
	n = strtoul(s, &end, 10);
	*ret = n > INT_MAX ? INT_MAX : (unsigned int)n;
	return !*end;
}

static struct d_pragma *add(const struct line *line, enum d_pragma_kind kind, const char *name, const char *value)
{
	struct d_prog *prog = line->l->prog;
	struct d_pragma *pr = arena_new_of(prog->arena, struct d_pragma);
	struct d_item *item;

	pr->kind = kind;
	pr->pos = line->pos;
	pr->of_lib = prog->state->in_lib;
	pr->name = name;
	pr->value = value;
	prog->items = arena_grow(prog->arena, prog->items, &prog->items_cap, prog->nitems, sizeof(*prog->items));
	item = &prog->items[prog->nitems++];
	item->kind = D_ITEM_PRAGMA;
	item->pragma = pr;
	return pr;
}

/* --- #line -------------------------------------------------------------------------------------------- */

/* The source called @name for positions.  It has no text: excerpts come from the script's own. */
static const struct source *named_source(struct d_lex *l, const char *name)
{
	struct source *src;

	if (l->text->orig && !strcmp(name, "<stdin>"))	/* the text that was given to cpp */
		return l->text->orig;
	if (!strcmp(name, l->text->name))
		return l->text;
	if (l->src != l->text && !strcmp(name, l->src->name))
		return l->src;
	src = source_text(l->prog->arena, name, "", 0);
	src->within = l->text;
	return src;
}

/* #line 12 "x.d" 1: the next line is line 12 of x.d.  @from: the number's word. */
static void control_line(struct line *line, size_t from)
{
	struct d_lex *l = line->l;
	unsigned int n, flag;
	size_t i;

	if (line->n <= from || !read_number(line->words[from], &n) || line->quoted[from] ||
	    (line->n > from + 1 && !line->quoted[from + 1]))
		goto malformed;
	for (i = from + 2; i < line->n; i++)
		if (!read_number(line->words[i], &flag))
			goto malformed;
	if (line->n > from + 1)
		l->src = named_source(l, line->words[from + 1]);
	l->line = n - 1;	/* its newline follows and adds 1; so 0 - 1 becomes 0 */
	return;
malformed:
	error(line, line->pos, "D_PRAGMA_MALFORM", "malformed #line <line> [\"file\" [state]]");
}

/* --- #pragma D ---------------------------------------------------------------------------------------- */

/* #pragma D option name[=value] */
static void pragma_option(struct line *line, size_t from)
{
	struct d_lex *l = line->l;
	const char *value = NULL;
	char *name, *eq;

	if (line->n <= from || line->quoted[from] || *line->words[from] == '=') {
		error(line, line->pos, "D_PRAGMA_MALFORM", "malformed #pragma option <option>=<val>");
		return;
	}
	name = arena_strdup(l->prog->arena, line->words[from]);
	eq = strchr(name, '=');
	if (eq) {
		*eq = '\0';
		value = eq + 1;
		if (!*value && line->n > from + 1 && line->quoted[from + 1])	/* name="value" */
			value = line->words[++from];
	}
	if (line->n > from + 1) {
		error(line, line->at[from + 1], "D_PRAGMA_MALFORM",
		      "superfluous arguments specified for #pragma option");
		return;
	}
	add(line, D_PRAGMA_OPTION, name, value);
	if (!strcmp(name, "defaultargs"))
		l->macros->m.defaultargs = true;
	if (!strcmp(name, "argref"))
		l->macros->m.argref = true;
}

/* #pragma D attributes name-stability/data-stability/class what... */
static void pragma_attributes(struct line *line, size_t from)
{
	struct d_attr attr;

	if (line->n < from + 2) {
		error(line, line->pos, "D_PRAGMA_MALFORM", "malformed #pragma attributes <attributes> <ident>");
		return;
	}
	if (!attr_parse(line->words[from], &attr)) {
		error(line, line->at[from], "D_PRAGMA_INVAL", "invalid attributes specified by #pragma attributes");
		return;
	}
	if (!strcmp(line->words[from + 1], "provider") && line->n < from + 4) {
		error(line, line->pos, "D_PRAGMA_MALFORM",
		      "malformed #pragma attributes <attributes> provider <name> <part>");
		return;
	}
	add(line, D_PRAGMA_ATTRIBUTES, line->words[from], join(line, from + 1));
}

/* #pragma D binding "1.0" what */
static void pragma_binding(struct line *line, size_t from)
{
	const char *s;
	size_t n = 0;

	if (line->n != from + 2 || !line->quoted[from]) {
		error(line, line->pos, "D_PRAGMA_MALFORM", "malformed #pragma binding \"version\" <ident>");
		return;
	}
	for (s = line->words[from]; isdigit((unsigned char)*s) && n < 3; n++) {
		while (isdigit((unsigned char)*s))
			s++;
		if (*s == '.' && s[1])
			s++;
	}
	if (*s || n < 2) {
		error(line, line->at[from], "D_PRAGMA_INVAL", "invalid version string specified by #pragma binding");
		return;
	}
	add(line, D_PRAGMA_BINDING, line->words[from], line->words[from + 1]);
}

/* #pragma D depends_on provider|module|library name */
static void pragma_depends(struct line *line, size_t from)
{
	const char *class;

	if (line->n < from + 2) {
		error(line, line->pos, "D_PRAGMA_MALFORM", "malformed #pragma depends_on <class> <name>");
		return;
	}
	class = line->words[from];
	if (strcmp(class, "provider") != 0 && strcmp(class, "module") != 0 && strcmp(class, "library") != 0) {
		error(line, line->at[from], "D_PRAGMA_INVAL", "invalid class %s specified by #pragma depends_on", class);
		return;
	}
	if (!line->l->prog->state->in_lib && line->l->prog->state->libs &&
	    !d_libs_have(line->l->prog, class, line->words[from + 1])) {
		error(line, line->at[from + 1], "D_PRAGMA_DEPEND", "the script depends on the %s %s, which is not there", class,
		      line->words[from + 1]);
		return;
	}
	add(line, D_PRAGMA_DEPENDS, class, line->words[from + 1]);
}

static void control_error(struct line *line, size_t from)
{
	error(line, line->pos, "D_PRAGERR", "#error: %s", join(line, from));
}

static void control_ident(struct line *line, size_t from)
{
	(void)line;	/* #ident of a version control system: ignored */
	(void)from;
}

/* Where a directive is allowed: after #, also after #pragma, or only after #pragma D. */
enum where { BARE, PRAGMA, PRAGMA_D };

static const struct {
	const char *name;
	enum where where;
	void (*run)(struct line *line, size_t from);
} directives[] = {
	{ "attributes", PRAGMA_D, pragma_attributes },
	{ "binding", PRAGMA_D, pragma_binding },
	{ "depends_on", PRAGMA_D, pragma_depends },
	{ "error", BARE, control_error },
	{ "ident", BARE, control_ident },
	{ "line", BARE, control_line },
	{ "option", PRAGMA_D, pragma_option },
};

static bool is_cpp(const char *name)
{
	static const char *const names[] = { "include", "include_next", "import", "define", "undef", "if", "ifdef",
					     "ifndef", "else", "elif", "endif", "warning" };
	size_t i;

	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (!strcmp(names[i], name))
			return true;
	return false;
}

void lex_control(struct d_lex *l)
{
	struct line line = { .l = l };
	enum where where = BARE;
	unsigned int n;
	size_t i = 0, d;

	if (!read_words(&line) || !line.n)
		return;
	if (!line.quoted[0] && read_number(line.words[0], &n)) {
		control_line(&line, 0);
		return;
	}
	if (!strcmp(line.words[0], "pragma")) {
		where = PRAGMA;
		i++;
		if (line.n > 1 && !strcmp(line.words[1], "D")) {
			where = PRAGMA_D;
			i++;
		}
	}
	if (i == line.n) {
		if (where == PRAGMA_D)
			error(&line, line.pos, "D_PRAGMA_INVAL", "invalid D pragma: it has no name");
		return;
	}
	for (d = 0; d < sizeof(directives) / sizeof(directives[0]); d++) {
		if (directives[d].where <= where && !line.quoted[i] && !strcmp(directives[d].name, line.words[i])) {
			directives[d].run(&line, i + 1);
			return;
		}
	}
	switch (where) {
	case BARE:	/* one report is enough for a script that is C */
		if (l->invalid_control)
			break;
		l->invalid_control = true;
		error(&line, line.pos, "D_PRAGCTL_INVAL", "invalid control directive: #%s", line.words[i]);
		if (!l->quiet && is_cpp(line.words[i]))
			diag_hint(l->diag, "use -C to run the script through cpp");
		break;
	case PRAGMA:	/* pragmas of other programs are ignored, as in C */
		break;
	case PRAGMA_D:
		error(&line, line.at[i], "D_PRAGMA_INVAL", "invalid D pragma: %s", line.words[i]);
		break;
	}
}
