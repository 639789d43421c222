/*
 * A growing, NUL-terminated string of bytes on the heap.  Zero-initialise it; strbuf_fini releases it.
 *
 * When memory runs out the buffer keeps what it had, drops the rest and remembers: @failed is then set.
 */
#ifndef DTAP_BASE_STRBUF_H
#define DTAP_BASE_STRBUF_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

struct strbuf {
	char *s;	/* NULL until something was added; else always NUL-terminated */
	size_t len, cap;
	bool failed;
};

void strbuf_fini(struct strbuf *b);	/* accepts a zeroed one; it is zeroed again afterwards */

/* Add @len bytes, a string, a byte, or what printf(3) would print. */
void strbuf_add(struct strbuf *b, const char *s, size_t len);
void strbuf_puts(struct strbuf *b, const char *s);
void strbuf_putc(struct strbuf *b, char c);
void strbuf_printf(struct strbuf *b, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void strbuf_vprintf(struct strbuf *b, const char *fmt, va_list ap) __attribute__((format(printf, 2, 0)));

/* Forget the text, keep the memory. */
void strbuf_clear(struct strbuf *b);

/* The text, "" when empty; stays the buffer's. */
const char *strbuf_str(const struct strbuf *b);

#endif
