/*
 * A growing, NUL-terminated string of bytes on the heap.  Zero-initialise it; strbuf_fini releases it.
 *
 * When the system is out of memory, the process ends (oom.h): text is never truncated.
 */
#ifndef DTAP_BASE_STRBUF_H
#define DTAP_BASE_STRBUF_H

#include <stdarg.h>
#include <stddef.h>

struct strbuf {
	char *s;	/* NULL until the first addition; then always NUL-terminated */
	size_t len, cap;
};

void strbuf_fini(struct strbuf *b);	/* accepts a zeroed one; it is zeroed again afterwards */

/* Append @len bytes, a string, a byte, or the output of printf(3). */
void strbuf_add(struct strbuf *b, const char *s, size_t len);
void strbuf_puts(struct strbuf *b, const char *s);
void strbuf_putc(struct strbuf *b, char c);
void strbuf_printf(struct strbuf *b, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void strbuf_vprintf(struct strbuf *b, const char *fmt, va_list ap) __attribute__((format(printf, 2, 0)));

/* Empty the string, keep the memory. */
void strbuf_clear(struct strbuf *b);

/* The text, "" when empty; owned by the buffer. */
const char *strbuf_str(const struct strbuf *b);

#endif
