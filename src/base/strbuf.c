#include "base/strbuf.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/oom.h"

void strbuf_fini(struct strbuf *b)
{
	free(b->s);
	memset(b, 0, sizeof(*b));
}

/* Make room for @more bytes and the NUL. */
static void reserve(struct strbuf *b, size_t more)
{
	size_t cap = b->cap ? b->cap : 64;
	char *s;

	while (cap - b->len <= more)
		cap *= 2;
	if (cap == b->cap)
		return;
	s = realloc(b->s, cap);
	if (!s)
		oom();
	b->s = s;
	b->cap = cap;
}

void strbuf_add(struct strbuf *b, const char *s, size_t len)
{
	reserve(b, len);
	if (len)
		memcpy(b->s + b->len, s, len);
	b->len += len;
	b->s[b->len] = '\0';
}

void strbuf_puts(struct strbuf *b, const char *s)
{
	strbuf_add(b, s, strlen(s));
}

void strbuf_putc(struct strbuf *b, char c)
{
	strbuf_add(b, &c, 1);
}

void strbuf_vprintf(struct strbuf *b, const char *fmt, va_list ap)
{
	va_list again;
	int len;

	va_copy(again, ap);
	len = vsnprintf(NULL, 0, fmt, again);
	va_end(again);
	if (len < 0)
		return;
	reserve(b, (size_t)len);
	vsnprintf(b->s + b->len, (size_t)len + 1, fmt, ap);
	b->len += (size_t)len;
}

void strbuf_printf(struct strbuf *b, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	strbuf_vprintf(b, fmt, ap);
	va_end(ap);
}

void strbuf_clear(struct strbuf *b)
{
	b->len = 0;
	if (b->s)
		b->s[0] = '\0';
}

const char *strbuf_str(const struct strbuf *b)
{
	return b->s ? b->s : "";
}
