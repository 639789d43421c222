#include "out/shown.h"

#include <stdbool.h>
#include <string.h>

#include "lang/format.h"
#include "out/sink.h"

enum { DEPTH_MAX = 64 };

struct line {
	const char *text;
	size_t len;		/* with its newline */
};

/* Parts that have begun, from the outermost; the first @printed of them are printed. */
struct parts {
	struct line at[DEPTH_MAX];
	size_t n, printed;
};

static void put(struct out_sink *s, const char *text, size_t n)
{
	for (size_t i = 0; i < n; i++)
		out_putc(s, text[i]);
}

/* Print @l, and before it the parts that it is in. */
static void put_line(struct out_sink *s, struct parts *p, const struct line *l)
{
	const char *value = memchr(l->text, SHOWN_VALUE, l->len), *rest = value;

	for (; p->printed < p->n; p->printed++)
		put(s, p->at[p->printed].text, p->at[p->printed].len);
	if (!value) {
		put(s, l->text, l->len);
		return;
	}
	while (*rest != SHOWN_AS_IT_IS && *rest != SHOWN_OTHERWISE)
		rest++;
	put(s, l->text, (size_t)(value - l->text));
	if (*rest == SHOWN_AS_IT_IS)
		put(s, value + 1, (size_t)(rest - value - 1));
	put(s, rest + 1, (size_t)(l->text + l->len - rest - 1));
}

static bool is_zero(const struct line *l)
{
	const char *value = memchr(l->text, SHOWN_VALUE, l->len);

	return value && value[1] == '0' && (value[2] == SHOWN_AS_IT_IS || value[2] == SHOWN_OTHERWISE);
}

/* The first character of @l that is no blank, and the last before its newline. */
static char first_of(const struct line *l)
{
	return l->text[strspn(l->text, " ")];
}

static char last_of(const struct line *l)
{
	return l->len > 1 ? l->text[l->len - 2] : '\0';
}

void out_shown(struct out_sink *s, const char *text)
{
	struct parts parts = { .n = 0 };

	for (struct line l = { .text = text }; *l.text; l.text += l.len) {
		const char *end = strchr(l.text, '\n');

		l.len = end ? (size_t)(end - l.text) + 1 : strlen(l.text);
		if ((last_of(&l) == '{' || last_of(&l) == '[') && parts.n < DEPTH_MAX) {
			parts.at[parts.n++] = l;
			if (parts.n == 1) {
				put(s, l.text, l.len);
				parts.printed = 1;
			}
		} else if (first_of(&l) == '}' || first_of(&l) == ']') {
			if (parts.printed == parts.n)
				put(s, l.text, l.len);
			parts.n -= parts.n != 0;
			if (parts.printed > parts.n)
				parts.printed = parts.n;
		} else if (!is_zero(&l)) {
			put_line(s, &parts, &l);
		}
	}
}
