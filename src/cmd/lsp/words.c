#include "cmd/lsp/words.h"

#include <fnmatch.h>
#include <string.h>

#include "base/strbuf.h"
#include "session/options.h"

/* --- D ------------------------------------------------------------------------------------------------ */

#define ROW(kind, name, proto, refused, doc) { WORD_##kind, name, proto, doc, refused },

static const struct word_row d_rows[] = {
#define D_GLOBAL(name, type, ...) ROW(VARIABLE, #name, type, false, NULL)
#define D_GLOBAL_NONE(name, type, why) ROW(VARIABLE, #name, type, true, why)
#include "d/globals.def"
#undef D_GLOBAL
#undef D_GLOBAL_NONE
#define D_SUBR(name, proto, ...) ROW(FUNCTION, #name, proto, false, NULL)
#define D_SUBR_NONE(name, proto, why) ROW(FUNCTION, #name, proto, true, why)
#include "d/subrs.def"
#undef D_SUBR
#define D_ACTION(name, proto, ...) ROW(FUNCTION, #name, proto, false, NULL)
#define D_ACTION_NONE(name, proto, why) ROW(FUNCTION, #name, proto, true, why)
#include "d/actions.def"
#undef D_ACTION
#undef D_ACTION_NONE
#define D_AGGFUNC(name, proto, ...) ROW(FUNCTION, #name, proto, false, NULL)
#include "d/aggfuncs.def"
#undef D_AGGFUNC
	ROW(KEYWORD, "self", "", false, "self->x: a variable of the thread.")
	ROW(KEYWORD, "this", "", false, "this->x: a variable of the clause.")
	ROW(KEYWORD, "if", "", false, "if (condition) ... else ...")
	ROW(KEYWORD, "else", "", false, "What runs if the condition is false.")
	ROW(KEYWORD, "sizeof", "", false, "The bytes of a type or value.")
	ROW(KEYWORD, "offsetof", "", false, "The bytes before a member.")
	ROW(KEYWORD, "stringof", "", false, "A value as a string.")
	ROW(KEYWORD, "xlate", "", false, "xlate <type>(value): by a translator.")
	ROW(KEYWORD, "inline", "", false, "inline int x = 1; a name for an expression.")
	ROW(KEYWORD, "typedef", "", false, "A name for a type.")
	ROW(KEYWORD, "translator", "", false, "translator to < from x > { member = ...; };")
};

static const struct {
	const char *name, *doc;
} d_docs[] = {
#define D_DOC(name, text) { #name, text },
#include "d/docs.def"
#undef D_DOC
};

static const char *d_doc(const char *name)
{
	for (size_t i = 0; i < sizeof(d_docs) / sizeof(d_docs[0]); i++)
		if (!strcmp(d_docs[i].name, name))
			return d_docs[i].doc;
	return "";
}

/* Options, for pragmas, come after the rows. */
static bool d_row(size_t i, struct word_row *ret)
{
	enum { NROWS = sizeof(d_rows) / sizeof(d_rows[0]) };

	if (i >= NROWS + OPT_MAX)
		return false;
	if (i >= NROWS) {
		*ret = (struct word_row){ .kind = WORD_OPTION, .name = option_name((enum option_id)(i - NROWS)), .proto = "",
					  .doc = option_what((enum option_id)(i - NROWS)) };
		return true;
	}
	*ret = d_rows[i];
	if (!ret->doc)
		ret->doc = d_doc(ret->name);
	return true;
}

/* --- SystemTap ---------------------------------------------------------------------------------------- */

#define BUILTIN(...) false, NULL
#define RUNTIME(...) false, NULL
#define CODE(...) false, NULL
#define WITH(...) false, NULL
#define PARTS(...) false, NULL
#define SHOW(...) false, NULL
#define NONE(why) true, why
#define GURU(why) true, why

static const struct word_row stap_rows[] = {
#define FUNC(name, proto, refused, why) ROW(FUNCTION, name, proto, refused, why)
#define EXPAND(...) FUNC(__VA_ARGS__)
#define STP_FUNC(name, proto, effect, ...) EXPAND(#name, proto, __VA_ARGS__)
#include "stp/functions.def"
#undef STP_FUNC
#undef EXPAND
#undef FUNC
#define STP_PRINT_OP(name, ...) ROW(FUNCTION, #name, "", false, NULL)
#include "stp/prints.def"
#undef STP_PRINT_OP
#define STP_POINT(pattern, ...) ROW(POINT, pattern, "", false, NULL)
#include "stp/points.def"
#undef STP_POINT
	ROW(KEYWORD, "probe", "", false, "probe points { ... }")
	ROW(KEYWORD, "function", "", false, "function f:long (a:string) { ... }")
	ROW(KEYWORD, "global", "", false, "A variable of the whole script.")
	ROW(KEYWORD, "private", "", false, "A declaration for this file only.")
	ROW(KEYWORD, "if", "", false, "if (condition) ... else ...")
	ROW(KEYWORD, "else", "", false, "What runs if the condition is 0.")
	ROW(KEYWORD, "while", "", false, "while (condition) ...")
	ROW(KEYWORD, "for", "", false, "for (start; condition; step) ...")
	ROW(KEYWORD, "foreach", "", false, "foreach (key in array) ...")
	ROW(KEYWORD, "in", "", false, "[key] in array: does the array have the key?")
	ROW(KEYWORD, "limit", "", false, "foreach (key in array limit n): at most n times.")
	ROW(KEYWORD, "return", "", false, "End the function with a value.")
	ROW(KEYWORD, "next", "", false, "End the handler.")
	ROW(KEYWORD, "break", "", false, "End the loop.")
	ROW(KEYWORD, "continue", "", false, "Go on with the next turn of the loop.")
	ROW(KEYWORD, "delete", "", false, "Remove an element, or all.")
	ROW(KEYWORD, "try", "", false, "try { ... } catch (message) { ... }")
	ROW(KEYWORD, "catch", "", false, "What runs after a fault in try.")
	ROW(OPERATOR, "count", "", false, "The number of values of a statistic.")
	ROW(OPERATOR, "sum", "", false, "The sum of a statistic.")
	ROW(OPERATOR, "min", "", false, "The smallest value of a statistic.")
	ROW(OPERATOR, "max", "", false, "The largest value of a statistic.")
	ROW(OPERATOR, "avg", "", false, "The average of a statistic.")
	ROW(OPERATOR, "variance", "", false, "The variance of a statistic.")
	ROW(OPERATOR, "hist_linear", "", false, "@hist_linear(s, low, high, width): a histogram.")
	ROW(OPERATOR, "hist_log", "", false, "@hist_log(s): a histogram in powers of two.")
	ROW(OPERATOR, "entry", "", false, "@entry(value): what it was when the function was called.")
	ROW(OPERATOR, "cast", "", false, "@cast(address, \"type\", \"module\")->member")
	ROW(OPERATOR, "defined", "", false, "@defined($x): is there such a variable?")
	ROW(OPERATOR, "var", "", false, "@var(\"name\", \"module\"): a variable of the program.")
	ROW(OPERATOR, "const", "", false, "@const(\"NAME\"): a constant of C.")
	ROW(OPERATOR, "perf", "", false, "@perf(\"name\"): a counter of the process.")
	ROW(OPERATOR, "define", "", false, "@define name(parameter) %( ... %)")
};

struct doc_row {
	const char *patterns, *doc;
};

static const struct doc_row stap_docs[] = {
#define STP_DOC(patterns, text) { patterns, text },
#define STP_POINT_DOC(patterns, text)
#include "stp/docs.def"
#undef STP_DOC
#undef STP_POINT_DOC
};

static const struct doc_row point_docs[] = {
#define STP_DOC(patterns, text)
#define STP_POINT_DOC(patterns, text) { patterns, text },
#include "stp/docs.def"
#undef STP_DOC
#undef STP_POINT_DOC
};

/* The row of which one of the patterns matches @name; "begin(N)" is "begin". */
static const char *doc_of(const struct doc_row *rows, size_t n, const char *name)
{
	char one[64];

	for (size_t i = 0; i < n; i++) {
		const char *p = rows[i].patterns;

		while (*p) {
			size_t len = strcspn(p, " "), plain = strlen(name);

			if (len < sizeof(one)) {
				memcpy(one, p, len);
				one[len] = '\0';
				if (!fnmatch(one, name, 0))
					return rows[i].doc;
				plain = plain > 3 && !strcmp(name + plain - 3, "(N)") ? plain - 3 : plain;
				if (len == plain && !strncmp(one, name, len))
					return rows[i].doc;
			}
			p += len;
			p += *p == ' ';
		}
	}
	return "";
}

static bool stap_row(size_t i, struct word_row *ret)
{
	if (i >= sizeof(stap_rows) / sizeof(stap_rows[0]))
		return false;
	*ret = stap_rows[i];
	if (ret->doc)
		return true;
	if (ret->refused)
		ret->doc = "There is no such function here.";
	else if (ret->kind == WORD_POINT)
		ret->doc = doc_of(point_docs, sizeof(point_docs) / sizeof(point_docs[0]), ret->name);
	else
		ret->doc = doc_of(stap_docs, sizeof(stap_docs) / sizeof(stap_docs[0]), ret->name);
	return true;
}

bool word_row(enum dtap_language language, size_t i, struct word_row *ret)
{
	return language == DTAP_STAP ? stap_row(i, ret) : d_row(i, ret);
}

/* --- how it is written -------------------------------------------------------------------------------- */

/* "string(uintptr_t)" as "string f(uintptr_t)"; @ is any type, and a result that begins with _ has no name. */
static void d_signature(const struct word_row *w, struct strbuf *out)
{
	size_t result = strcspn(w->proto, "(");

	if (w->kind == WORD_FUNCTION && strncmp(w->proto, "void(", 5) && *w->proto != '_')
		strbuf_printf(out, "%.*s%s", (int)result, w->proto, w->proto[result - 1] == '*' ? "" : " ");
	else if (w->kind == WORD_VARIABLE && strcmp(w->proto, "void"))
		strbuf_printf(out, "%s%s", w->proto, w->proto[strlen(w->proto) - 1] == '*' ? "" : " ");
	strbuf_puts(out, w->name);
	for (const char *p = w->proto + result; w->kind == WORD_FUNCTION && *p; p++) {
		if (*p == '@')
			strbuf_puts(out, "any");
		else
			strbuf_putc(out, *p);
	}
}

/* "s(ll)" as "f:string (long, long)". */
static void stap_signature(const struct word_row *w, struct strbuf *out)
{
	strbuf_puts(out, w->name);
	if (!*w->proto)
		return;
	if (*w->proto != 'v')
		strbuf_puts(out, *w->proto == 's' ? ":string" : ":long");
	strbuf_puts(out, " (");
	for (const char *p = w->proto + 2; *p && *p != ')'; p++)
		strbuf_printf(out, "%s%s", p > w->proto + 2 ? ", " : "", *p == 's' ? "string" : "long");
	strbuf_putc(out, ')');
}

void word_signature(enum dtap_language language, const struct word_row *w, struct strbuf *out)
{
	if (language == DTAP_STAP)
		stap_signature(w, out);
	else
		d_signature(w, out);
}
