#include "cmd/lsp/frame.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

enum { MAX_HEADER = 4096, PIECE = 64 << 10 };

/* Append what there is to read.  1, 0 at the end, or a negative errno. */
static int more(struct frame *f)
{
	char piece[PIECE];
	ssize_t n;

	do
		n = read(f->in, piece, sizeof(piece));
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return -errno;
	strbuf_add(&f->buf, piece, (size_t)n);
	return n > 0;
}

/* The value of the field of the header @s of @len bytes, or -EPROTO, or -EMSGSIZE: it is more than @max. */
static ssize_t content_length(const char *s, size_t len, size_t max)
{
	static const char field[] = "Content-Length:";
	const char *end = s + len, *line = s, *nl;
	ssize_t ret = -EPROTO;

	for (; line < end; line = nl + 2) {
		nl = memmem(line, (size_t)(end - line), "\r\n", 2);
		if (!nl || nl == line)
			break;
		if ((size_t)(nl - line) < strlen(field) || strncasecmp(line, field, strlen(field)))
			continue;
		for (line += strlen(field); *line == ' '; line++)
			;
		if (line == nl || ret >= 0)
			return -EPROTO;
		for (ret = 0; line < nl; line++) {
			if (*line < '0' || *line > '9')
				return -EPROTO;
			ret = ret * 10 + (*line - '0');
			if ((size_t)ret > max)
				return -EMSGSIZE;
		}
	}
	return ret;
}

int frame_read(struct frame *f, size_t max, struct strbuf *msg)
{
	const char *end = NULL;
	ssize_t len;
	size_t head;
	int e;

	for (;;) {
		const char *s = strbuf_str(&f->buf) + f->at;

		end = memmem(s, f->buf.len - f->at, "\r\n\r\n", 4);
		if (end)
			break;
		if (f->buf.len - f->at > MAX_HEADER)
			return -EPROTO;
		e = more(f);
		if (e <= 0)
			return e || f->buf.len == f->at ? e : -EPROTO;
	}
	head = (size_t)(end - f->buf.s) + 4;
	len = content_length(f->buf.s + f->at, head - f->at, max);
	if (len < 0)
		return (int)len;
	while (f->buf.len - head < (size_t)len) {
		e = more(f);
		if (e <= 0)
			return e ? e : -EPROTO;
	}
	strbuf_clear(msg);
	strbuf_add(msg, f->buf.s + head, (size_t)len);
	f->at = head + (size_t)len;
	if (f->at == f->buf.len) {
		strbuf_clear(&f->buf);
		f->at = 0;
	} else if (f->at > PIECE && f->at > f->buf.len / 2) {
		memmove(f->buf.s, f->buf.s + f->at, f->buf.len - f->at + 1);
		f->buf.len -= f->at;
		f->at = 0;
	}
	return 1;
}

bool frame_is_waiting(const struct frame *f)
{
	struct pollfd p = { .fd = f->in, .events = POLLIN };

	return f->buf.len > f->at || poll(&p, 1, 0) > 0;
}

static void put(struct frame *f, const char *s, size_t len)
{
	while (len && !f->failed) {
		ssize_t n = write(f->out, s, len);

		if (n < 0 && errno == EINTR)
			continue;
		f->failed = n < 0;
		s += f->failed ? 0 : n;
		len -= f->failed ? 0 : (size_t)n;
	}
}

void frame_write(struct frame *f, const char *s, size_t len)
{
	struct strbuf head = { 0 };

	strbuf_printf(&head, "Content-Length: %zu\r\n\r\n", len);
	put(f, head.s, head.len);
	put(f, s, len);
	strbuf_fini(&head);
}

void frame_fini(struct frame *f)
{
	strbuf_fini(&f->buf);
}
