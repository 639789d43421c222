/*
 * A sink for text: a buffer in front of a descriptor, or memory.
 *
 * Nothing is lost silently.  The first error (disk full, the reader of a pipe has closed it) is kept; later output
 * is counted in @lost and discarded, so that printers need not check each call: the
 * owner checks the result of out_flush and out_close.  If a descriptor would block, the sink waits.
 *
 * Writing allocates nothing, except that a sink in memory grows.
 */
#ifndef DTAP_OUT_SINK_H
#define DTAP_OUT_SINK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct dialect;
struct names;

enum { OUT_STACK_INDENT = 14 };	/* DTrace's own */

struct out_sink {
	struct names *names;	/* the stacks by their numbers (names.h); NULL: not known */
	const struct dialect *dialect;	/* output rules (dialect.h); NULL: D's */
	unsigned int stack_indent;	/* blanks before each frame of a stack; default OUT_STACK_INDENT */
	char *buf;
	size_t len, cap;
	int fd;			/* -1: memory */
	bool owned;		/* out_close closes the descriptor */
	int first;		/* -1, or the original descriptor while out_reopen's is used; @owned refers to it */
	int err;		/* 0, or the first negative errno */
	uint64_t lost;		/* bytes discarded since */
};

/* The dialect of @s, never NULL. */
const struct dialect *out_dialect(const struct out_sink *s);

/* A sink over @fd, which stays the caller's and must outlive it.  0 or -ENOMEM. */
int out_open_fd(struct out_sink *s, int fd);

/* A sink that appends to the file @path, which is created with mode 0666 if needed (dtrace -o).  0, or a
 * negative errno; then @s needs no out_close. */
int out_open_file(struct out_sink *s, const char *path);

/* A sink in memory. */
void out_open_mem(struct out_sink *s);

/* The text in a memory sink, NUL-terminated; owned by the sink, valid until the next write.  "" if the first
 * allocation failed. */
const char *out_text(struct out_sink *s);

/* Empty a memory sink. */
void out_reset(struct out_sink *s);

/* Redirect output to the file @path, created or truncated; "": to the original descriptor.  0 or a negative errno. */
int out_reopen(struct out_sink *s, const char *path);

/* Truncate the output if it is a regular file.  0, or the first error so far. */
int out_truncate(struct out_sink *s);

/* Write the buffer to the descriptor.  0, or the first error so far. */
int out_flush(struct out_sink *s);

/* Flush and release.  0, or the first error so far.  Accepts a zeroed sink. */
int out_close(struct out_sink *s);

/* The longest output of one out_format, with a NUL. */
enum { OUT_ROOM = 4096 };

/* out_put when the buffer is full. */
void out_put_full(struct out_sink *s, const char *text, size_t len);

/*
 * memcpy for the few bytes of most pieces of a line: two copies of a fixed size that may overlap.  A
 * line of four values takes 62 ns with it and 80 ns with a call of memcpy.
 */
static inline void out_copy(char *to, const char *from, size_t len)
{
	if (len > 16) {
		memcpy(to, from, len);
	} else if (len >= 8) {
		memcpy(to, from, 8);
		memcpy(to + len - 8, from + len - 8, 8);
	} else if (len >= 4) {
		memcpy(to, from, 4);
		memcpy(to + len - 4, from + len - 4, 4);
	} else if (len) {
		to[0] = from[0];
		to[len / 2] = from[len / 2];
		to[len - 1] = from[len - 1];
	}
}

static inline void out_put(struct out_sink *s, const char *text, size_t len)
{
	if (s->cap - s->len > len) {
		out_copy(s->buf + s->len, text, len);
		s->len += len;
	} else {
		out_put_full(s, text, len);
	}
}

/* @n times @c. */
void out_pad(struct out_sink *s, char c, size_t n);

/* printf, for lines of bounded length: truncated after OUT_ROOM - 1 bytes. */
void out_format(struct out_sink *s, const char *format, ...) __attribute__((format(printf, 2, 3)));

static inline void out_puts(struct out_sink *s, const char *text)
{
	out_put(s, text, strlen(text));
}

static inline void out_putc(struct out_sink *s, char c)
{
	out_put(s, &c, 1);
}

#endif
