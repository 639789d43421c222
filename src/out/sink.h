/*
 * Where text goes: a buffer in front of a descriptor, or memory.
 *
 * Nothing is lost silently.  The first error (disk full, the reader of a pipe gone) is remembered; what is
 * written after it is counted in @lost and thrown away, so that printers need not check each call: the
 * owner looks at the result of out_flush and out_close.  A descriptor that would block is waited for.
 *
 * Writing allocates nothing, except that a sink in memory grows.
 */
#ifndef DTAP_OUT_SINK_H
#define DTAP_OUT_SINK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct names;

enum { OUT_STACK_INDENT = 14 };	/* DTrace's own */

struct out_sink {
	struct names *names;	/* what numbers of stacks stand for (names.h); NULL: nobody knows */
	unsigned int stack_indent;	/* blanks before each frame of a stack: OUT_STACK_INDENT, or as it is set */
	char *buf;
	size_t len, cap;
	int fd;			/* -1: memory */
	bool owned;		/* out_close closes the descriptor */
	int first;		/* -1, or the descriptor of the start, while out_reopen's is used; @owned is its */
	int err;		/* 0, or the first negative errno */
	uint64_t lost;		/* bytes thrown away since */
};

/* A sink over @fd, which stays the caller's and must outlive it.  0 or -ENOMEM. */
int out_open_fd(struct out_sink *s, int fd);

/* A sink that appends to the file @path, made with mode 0666 when it is not there (dtrace -o).  0 or a
 * negative errno: @s needs no out_close then. */
int out_open_file(struct out_sink *s, const char *path);

/* A sink in memory. */
void out_open_mem(struct out_sink *s);

/* What a sink in memory holds, NUL-terminated; the sink's until the next write.  "" when memory ran out at
 * once. */
const char *out_text(struct out_sink *s);

/* Forget what a sink in memory holds. */
void out_reset(struct out_sink *s);

/* Write to the end of the file @path from here on; "" is the descriptor of the start again.  0 or a negative errno. */
int out_reopen(struct out_sink *s, const char *path);

/* Cut the file that is written to, if it is one. 0 or the first error ever met. */
int out_truncate(struct out_sink *s);

/* Hand everything to the descriptor.  0, or the first error ever met. */
int out_flush(struct out_sink *s);

/* Flush and release.  0, or the first error ever met.  Accepts a zeroed sink. */
int out_close(struct out_sink *s);

/* Bytes that out_format may make at a time. */
enum { OUT_ROOM = 4096 };

/* out_put where the buffer is full. */
void out_put_full(struct out_sink *s, const char *text, size_t len);

/*
 * memcpy for the few bytes that most pieces of a line have: two copies of a fixed size that may overlap.  A
 * line of four values costs 62 ns with it and 80 with the call.
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

/* printf, for lines whose length is bounded: what is behind OUT_ROOM - 1 bytes is cut. */
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
