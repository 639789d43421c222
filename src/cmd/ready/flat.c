#include "cmd/ready/flat.h"

#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/strbuf.h"

struct reading {
	const char *line, *at;
	struct strbuf *why;
};

static int refuse(struct reading *r, const char *what)
{
	strbuf_printf(r->why, "it is no flat object of JSON: at column %zu %s is missing", (size_t)(r->at - r->line) + 1, what);
	return -EINVAL;
}

static void skip_blanks(struct reading *r)
{
	r->at += strspn(r->at, " \t\r\n");
}

static bool take(struct reading *r, char c)
{
	skip_blanks(r);
	if (*r->at != c)
		return false;
	r->at++;
	return true;
}

/* --- texts --------------------------------------------------------------------------------------------- */

/* The four digits of \uXXXX; -1 if there are none. */
static int32_t hex4(const char *s)
{
	int32_t n = 0;

	for (size_t i = 0; i < 4; i++) {
		if (!isxdigit((unsigned char)s[i]))
			return -1;
		n = n * 16 + (isdigit((unsigned char)s[i]) ? s[i] - '0' : tolower((unsigned char)s[i]) - 'a' + 10);
	}
	return n;
}

static void put_utf8(int32_t c, struct strbuf *out)
{
	if (c < 0x80) {
		strbuf_putc(out, (char)c);
		return;
	}
	if (c < 0x800) {
		strbuf_putc(out, (char)(0xc0 | c >> 6));
	} else if (c < 0x10000) {
		strbuf_putc(out, (char)(0xe0 | c >> 12));
		strbuf_putc(out, (char)(0x80 | (c >> 6 & 0x3f)));
	} else {
		strbuf_putc(out, (char)(0xf0 | c >> 18));
		strbuf_putc(out, (char)(0x80 | (c >> 12 & 0x3f)));
		strbuf_putc(out, (char)(0x80 | (c >> 6 & 0x3f)));
	}
	strbuf_putc(out, (char)(0x80 | (c & 0x3f)));
}

/* What stands behind "\u": a character, of two such where it is a pair of surrogates; one alone is U+FFFD. */
static int take_unicode(struct reading *r, struct strbuf *out)
{
	int32_t c = hex4(r->at), low = -1;

	if (c <= 0)
		return refuse(r, "a character in four digits");
	r->at += 4;
	if (c >= 0xd800 && c < 0xdc00 && !strncmp(r->at, "\\u", 2))
		low = hex4(r->at + 2);
	if (low >= 0xdc00 && low < 0xe000) {
		r->at += 6;
		c = 0x10000 + ((c - 0xd800) << 10) + (low - 0xdc00);
	}
	put_utf8(c >= 0xd800 && c < 0xe000 ? 0xfffd : c, out);
	return 0;
}

static int take_escape(struct reading *r, struct strbuf *out)
{
	static const char letters[] = "\"\\/bfnrt", meaning[] = "\"\\/\b\f\n\r\t";
	const char *found = *r->at ? strchr(letters, *r->at) : NULL;

	if (*r->at == 'u') {
		r->at++;
		return take_unicode(r, out);
	}
	if (!found)
		return refuse(r, "the letter of an escape");
	strbuf_putc(out, meaning[found - letters]);
	r->at++;
	return 0;
}

static int take_text(struct reading *r, struct strbuf *out)
{
	int e = 0;

	strbuf_clear(out);
	if (!take(r, '"'))
		return refuse(r, "a text");
	while (!e && *r->at && *r->at != '"') {
		if (*r->at != '\\') {
			strbuf_putc(out, *r->at++);
			continue;
		}
		r->at++;
		e = take_escape(r, out);
	}
	if (!e && !*r->at)
		return refuse(r, "the end of a text");
	r->at += !e;
	return e;
}

/* --- numbers ------------------------------------------------------------------------------------------- */

static int take_number(struct reading *r, int64_t *ret)
{
	char *end;

	*ret = 0;
	if (!strncmp(r->at, "null", 4)) {
		r->at += 4;
		return 0;
	}
	if (!isdigit((unsigned char)r->at[*r->at == '-']))
		return refuse(r, "a text or a number");
	errno = 0;
	*ret = strtoll(r->at, &end, 10);
	if (errno || *end == '.' || tolower((unsigned char)*end) == 'e')
		return refuse(r, "an integer of 64 bits");
	r->at = end;
	return 0;
}

/* --- the object ---------------------------------------------------------------------------------------- */

static int take_member(struct reading *r, struct strbuf *name, struct strbuf *text, flat_member *each, void *ctx)
{
	int64_t number = 0;
	bool is_text;
	int e = take_text(r, name);

	if (e)
		return e;
	if (!take(r, ':'))
		return refuse(r, "':'");
	skip_blanks(r);
	is_text = *r->at == '"';
	e = is_text ? take_text(r, text) : take_number(r, &number);
	if (!e)
		each(ctx, strbuf_str(name), is_text ? strbuf_str(text) : NULL, number);
	return e;
}

int flat_read(const char *line, flat_member *each, void *ctx, struct strbuf *why)
{
	struct strbuf name = { 0 }, text = { 0 };
	struct reading r = { line, line, why };
	int e = 0;

	skip_blanks(&r);
	if (*r.at != '{')
		return refuse(&r, "'{'");
	r.at++;
	if (!take(&r, '}')) {
		do
			e = take_member(&r, &name, &text, each, ctx);
		while (!e && take(&r, ','));
		if (!e && !take(&r, '}'))
			e = refuse(&r, "'}'");
	}
	skip_blanks(&r);
	if (!e && *r.at)
		e = refuse(&r, "the end of the line");
	strbuf_fini(&name);
	strbuf_fini(&text);
	return e;
}
