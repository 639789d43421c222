#include "cmd/ready/pattern.h"

#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "base/ends.h"
#include "base/strbuf.h"

static const char arg_file[] = "copyinstr(arg0)", arg_function[] = "copyinstr(arg1)";

void ready_literal(const char *s, size_t len, struct strbuf *out)
{
	strbuf_putc(out, '"');
	for (size_t i = 0; i < len; i++) {
		unsigned char c = (unsigned char)s[i];

		if (isalnum(c) || c == '_' || c == '.' || c == '/' || c == ' ')
			strbuf_putc(out, (char)c);
		else
			strbuf_printf(out, "\\%03o", c);
	}
	strbuf_putc(out, '"');
}

/* --- one text ------------------------------------------------------------------------------------------ */

static void begins(const char *what, const char *s, size_t len, struct strbuf *out)
{
	strbuf_printf(out, "index(%s, ", what);
	ready_literal(s, len, out);
	strbuf_puts(out, ") == 0");
}

static void ends(const char *what, const char *s, size_t len, struct strbuf *out)
{
	strbuf_printf(out, "strlen(%s) >= %zu && substr(%s, strlen(%s) - %zu) == ", what, len, what, what, len);
	ready_literal(s, len, out);
}

static void has(const char *what, const char *s, size_t len, struct strbuf *out)
{
	strbuf_printf(out, "index(%s, ", what);
	ready_literal(s, len, out);
	strbuf_puts(out, ") >= 0");
}

/*
 * Append a test that @what matches the glob: with stars at its start or end, or one inside.  False: the glob has
 * another form.
 */
static bool matches(const char *what, const char *s, size_t len, struct strbuf *out)
{
	const char *star = memchr(s, '*', len);
	size_t head, tail;
	bool front, back;

	if (!star) {
		strbuf_printf(out, "%s == ", what);
		ready_literal(s, len, out);
		return true;
	}
	for (front = false; len && *s == '*'; front = true)
		s++, len--;
	for (back = false; len && s[len - 1] == '*'; back = true)
		len--;
	if (!len) {
		strbuf_putc(out, '1');
		return true;
	}
	star = memchr(s, '*', len);
	if (!star && front && back) {
		has(what, s, len, out);
	} else if (!star && front) {
		ends(what, s, len, out);
	} else if (!star) {
		begins(what, s, len, out);
	} else {
		head = (size_t)(star - s);
		tail = len - head - 1;
		if (front || back || memchr(star + 1, '*', tail))
			return false;
		strbuf_printf(out, "strlen(%s) >= %zu && ", what, head + tail);
		begins(what, s, head, out);
		strbuf_puts(out, " && ");
		ends(what, star + 1, tail, out);
	}
	return true;
}

/* --- where a function is ------------------------------------------------------------------------------- */

static void is_path(const char *path, size_t len, struct strbuf *out)
{
	struct strbuf below = { 0 };

	strbuf_putc(&below, '/');
	strbuf_add(&below, path, len);
	strbuf_printf(out, "(%s == ", arg_file);
	ready_literal(path, len, out);
	strbuf_puts(out, " || ");
	ends(arg_file, strbuf_str(&below), below.len, out);
	strbuf_putc(out, ')');
	strbuf_fini(&below);
}

/* Append a test for the files of module a.b: a/b.py or a/b/__init__.py in any folder. */
static void is_module(const char *name, size_t len, struct strbuf *out)
{
	static const char *const tails[] = { ".py", "/__init__.py" };
	struct strbuf path = { 0 };

	strbuf_putc(out, '(');
	for (size_t k = 0; k < 2; k++) {
		strbuf_clear(&path);
		for (size_t i = 0; i < len; i++)
			strbuf_putc(&path, name[i] == '.' ? '/' : name[i]);
		strbuf_puts(&path, tails[k]);
		strbuf_puts(out, k ? " || " : "");
		is_path(strbuf_str(&path), path.len, out);
	}
	strbuf_putc(out, ')');
	strbuf_fini(&path);
}

/* Append a test for the files of package a: all below a folder a. */
static void is_package(const char *name, size_t len, struct strbuf *out)
{
	struct strbuf path = { 0 };

	strbuf_putc(&path, '/');
	for (size_t i = 0; i < len; i++)
		strbuf_putc(&path, name[i] == '.' ? '/' : name[i]);
	strbuf_putc(&path, '/');
	strbuf_putc(out, '(');
	has(arg_file, strbuf_str(&path), path.len, out);
	strbuf_puts(out, " || ");
	begins(arg_file, strbuf_str(&path) + 1, path.len - 1, out);
	strbuf_putc(out, ')');
	strbuf_fini(&path);
}

static bool is_in(const char *where, size_t len, struct strbuf *out)
{
	if (len == 1 && *where == '*') {
		strbuf_putc(out, '1');
	} else if (memchr(where, '/', len) || ends_in(where, len, ".py")) {
		if (memchr(where, '*', len))
			return matches(arg_file, where, len, out);
		if (*where == '/')
			return matches(arg_file, where, len, out);
		is_path(where, len, out);
	} else if (ends_in(where, len, ".*") && !memchr(where, '*', len - 1)) {
		is_package(where, len - 2, out);
	} else if (memchr(where, '*', len)) {
		return false;
	} else {
		is_module(where, len, out);
	}
	return true;
}

/* --- the patterns -------------------------------------------------------------------------------------- */

static int refuse(struct strbuf *err, const char *pattern, const char *why)
{
	strbuf_printf(err, "function pattern '%s': %s", pattern, why);
	return -EINVAL;
}

static int one(const char *pattern, struct strbuf *out, struct strbuf *err)
{
	const char *colon = strrchr(pattern, ':'), *name = colon ? colon + 1 : pattern;

	if (!*name || colon == pattern)
		return refuse(err, pattern, "a name is missing; it is FUNCTION, MODULE:FUNCTION or FILE.py:FUNCTION");
	if (strpbrk(pattern, "?["))
		return refuse(err, pattern, "of the shell's patterns only * is known");
	if (strchr(name, '.'))
		return refuse(err, pattern, "functions are known by their own names, without those of classes and functions "
			      "around them; a module is followed by a colon: MODULE:FUNCTION");
	strbuf_putc(out, '(');
	if (colon && !is_in(pattern, (size_t)(colon - pattern), out))
		return refuse(err, pattern, "of a module * can be all, or the last part: package.*");
	if (colon)
		strbuf_puts(out, " && ");
	if (!matches(arg_function, name, strlen(name), out))
		return refuse(err, pattern, "a name can have one * inside, or one at each end");
	strbuf_putc(out, ')');
	return 0;
}

int ready_pattern(const char *const *patterns, size_t n, struct strbuf *out, struct strbuf *err)
{
	int e = 0;

	if (!n)
		strbuf_putc(out, '1');
	for (size_t i = 0; i < n && !e; i++) {
		strbuf_puts(out, i ? " || " : "");
		e = one(patterns[i], out, err);
	}
	return e;
}

/* --- probes of provider py ------------------------------------------------------------------------------ */

/* Can the text be used in a description?  Not with characters that end one or have another meaning in a script. */
static bool is_describable(const char *s, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (!isalnum((unsigned char)s[i]) && !strchr("_.*?<>[]-", s[i]) && (unsigned char)s[i] < 0x80)
			return false;
	return true;
}

static int describe(const char *pattern, const char *name, size_t len, struct strbuf *out, struct strbuf *err)
{
	const char *colon = strrchr(pattern, ':'), *function = colon ? colon + 1 : pattern;
	size_t mod = colon ? (size_t)(colon - pattern) : 0;

	if (!*function || colon == pattern)
		return refuse(err, pattern, "a name is missing; it is FUNCTION or MODULE:FUNCTION");
	if (mod && (memchr(pattern, '/', mod) || ends_in(pattern, mod, ".py")))
		return refuse(err, pattern, "it is MODULE:FUNCTION here, as in app.orders:get, not a file");
	if (!is_describable(pattern, mod) || !is_describable(function, strlen(function)))
		return refuse(err, pattern, "a name has letters, digits, _ and ., and the shell's patterns");
	for (int k = 0; k < (strchr(function, '.') || *function == '*' ? 1 : 2); k++)
		strbuf_printf(out, "%spy*:%.*s:%s%s:%.*s", k ? ", " : "", mod ? (int)mod : 1, mod ? pattern : "*", k ? "*." : "",
			      function, (int)len, name);
	return 0;
}

int ready_descriptions(const char *const *patterns, size_t n, const char *name, size_t len, struct strbuf *out,
		       struct strbuf *err)
{
	int e = n ? 0 : describe("*", name, len, out, err);

	for (size_t i = 0; i < n && !e; i++) {
		strbuf_puts(out, i ? ", " : "");
		e = describe(patterns[i], name, len, out, err);
	}
	return e;
}
