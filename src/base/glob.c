/* SPDX-License-Identifier: MIT */
#include "base/glob.h"

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/utf8.h"

/* Take the UTF-8 character at *@p; a byte that begins none is a character of its own, which no valid one equals. */
static uint32_t take_char(const char **p)
{
	const unsigned char *s = (const unsigned char *)*p;
	unsigned int n = utf8_bytes(*p);
	uint32_t c = n == 1 ? *s : *s & (0x7fu >> n);

	*p += n ? n : 1;
	if (!n)
		return *s | 0x80000000;
	for (unsigned int i = 1; i < n; i++)
		c = c << 6 | (s[i] & 0x3f);
	return c;
}

/* The position after the set that begins at @p, or NULL if it has no end; *@fits: does it contain the character @c? */
static const char *match_set(const char *p, uint32_t c, bool *fits)
{
	bool not = p[1] == '!' || p[1] == '^', in = false;
	const char *first = p += 1 + not;

	while (*p && (*p != ']' || p == first)) {
		uint32_t low, high;

		if (*p == '\\' && p[1])
			p++;
		low = high = take_char(&p);
		if (*p == '-' && p[1] && p[1] != ']') {
			p++;
			high = take_char(&p);
		}
		in |= c >= low && c <= high;
	}
	*fits = in != not;
	return *p ? p + 1 : NULL;
}

/*
 * Match one element of the pattern other than an asterisk: returns the position after it and advances *@text; NULL: no
 * match.
 */
static const char *match_one(const char *p, const char **text)
{
	const char *end;
	uint32_t c;
	bool fits;

	if (!**text)
		return NULL;
	c = take_char(text);
	if (*p == '?')
		return p + 1;
	end = *p == '[' ? match_set(p, c, &fits) : NULL;
	if (end)
		return fits ? end : NULL;
	if (*p == '\\' && p[1])
		p++;
	return take_char(&p) == c ? p : NULL;
}

bool glob_match(const char *pattern, const char *text)
{
	const char *star = NULL, *again = NULL;

	if (!*pattern)
		return true;
	for (;;) {
		const char *next;

		if (*pattern == '*') {
			star = ++pattern;
			again = text;
			continue;
		}
		if (!*pattern && !*text)
			return true;
		next = *pattern ? match_one(pattern, &text) : NULL;
		if (next) {
			pattern = next;
			continue;
		}
		/* Let the last asterisk match one more character. */
		if (!star || !*again)
			return false;
		take_char(&again);
		text = again;
		pattern = star;
	}
}

bool glob_is(const char *pattern)
{
	return !*pattern || pattern[strcspn(pattern, "*?[\\")];
}
