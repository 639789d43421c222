#include "out/sink.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "out/dialect.h"

enum { BUF_SIZE = 64 * 1024 };

int out_open_fd(struct out_sink *s, int fd)
{
	*s = (struct out_sink){ .fd = fd, .first = -1, .stack_indent = OUT_STACK_INDENT, .cap = BUF_SIZE, .buf = malloc(BUF_SIZE) };
	return s->buf ? 0 : -ENOMEM;
}

int out_open_file(struct out_sink *s, const char *path)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
	int err;

	if (fd < 0)
		return -errno;
	err = out_open_fd(s, fd);
	if (err) {
		close(fd);
		return err;
	}
	s->owned = true;
	return 0;
}

const struct dialect *out_dialect(const struct out_sink *s)
{
	return s->dialect ? s->dialect : &dialect_d;
}

void out_open_mem(struct out_sink *s)
{
	*s = (struct out_sink){ .fd = -1, .first = -1, .stack_indent = OUT_STACK_INDENT };
}

int out_reopen(struct out_sink *s, const char *path)
{
	int fd = -1, err = out_flush(s);

	if (err)
		return err;
	if (*path) {
		fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
		if (fd < 0)
			return -errno;
	}
	if (s->first >= 0) {
		close(s->fd);
		s->fd = s->first;
		s->first = -1;
	}
	if (fd >= 0) {
		s->first = s->fd;
		s->fd = fd;
	}
	return 0;
}

int out_truncate(struct out_sink *s)
{
	struct stat st;
	int err = out_flush(s);

	if (!err && !fstat(s->fd, &st) && S_ISREG(st.st_mode) && (ftruncate(s->fd, 0) || lseek(s->fd, 0, SEEK_SET)))
		err = -errno;
	return err;
}

static void lose(struct out_sink *s, size_t n, int err)
{
	if (!s->err)
		s->err = err;
	s->lost += n;
}

/* Write all of it, or count the rest as lost. */
static void write_out(struct out_sink *s, const char *p, size_t n)
{
	struct pollfd pfd = { .fd = s->fd, .events = POLLOUT };
	ssize_t done;

	while (n && !s->err) {
		done = write(s->fd, p, n);
		if (done > 0) {
			p += done;
			n -= (size_t)done;
		} else if (done < 0 && errno == EAGAIN) {
			poll(&pfd, 1, -1);
		} else if (done == 0 || errno != EINTR) {
			lose(s, 0, done ? -errno : -EIO);
		}
	}
	s->lost += n;
}

/* Enlarge the buffer of a memory sink for @n more bytes and a NUL. */
static bool grow(struct out_sink *s, size_t n)
{
	size_t cap = s->cap ? s->cap : 256;
	char *buf;

	while (cap - s->len <= n)
		cap *= 2;
	buf = realloc(s->buf, cap);
	if (!buf)
		return false;
	s->buf = buf;
	s->cap = cap;
	return true;
}

/* Make room for @n bytes, at most OUT_ROOM.  Returns where to put them, or NULL: they are lost.  The caller adds what
 * it used to @len. */
static char *out_room(struct out_sink *s, size_t n)
{
	if (s->cap - s->len > n)
		return s->buf + s->len;
	if (s->fd < 0) {
		if (s->err || !grow(s, n)) {
			lose(s, n, -ENOMEM);
			return NULL;
		}
		return s->buf + s->len;
	}
	out_flush(s);
	return s->buf;
}

void out_put_full(struct out_sink *s, const char *text, size_t len)
{
	char *p;

	if (s->fd >= 0 && len >= s->cap) {
		out_flush(s);
		write_out(s, text, len);
		return;
	}
	p = out_room(s, len);
	if (p) {
		memcpy(p, text, len);
		s->len += len;
	}
}

void out_pad(struct out_sink *s, char c, size_t n)
{
	while (n) {
		size_t some = n < OUT_ROOM ? n : OUT_ROOM;
		char *p = out_room(s, some);

		if (p) {
			memset(p, c, some);
			s->len += some;
		}
		n -= some;
	}
}

void out_format(struct out_sink *s, const char *format, ...)
{
	char *p = out_room(s, OUT_ROOM);
	va_list ap;
	int n;

	if (!p)
		return;
	va_start(ap, format);
	n = vsnprintf(p, OUT_ROOM, format, ap);
	va_end(ap);
	if (n > 0)
		s->len += n < OUT_ROOM ? (size_t)n : OUT_ROOM - 1;
}

const char *out_text(struct out_sink *s)
{
	if (!s->buf && !grow(s, 0))
		return "";
	s->buf[s->len] = '\0';
	return s->buf;
}

void out_reset(struct out_sink *s)
{
	s->len = 0;
}

int out_flush(struct out_sink *s)
{
	size_t n = s->len;

	if (s->fd >= 0) {
		s->len = 0;
		write_out(s, s->buf, n);
	}
	return s->err;
}

int out_close(struct out_sink *s)
{
	int err;

	if (!s->buf)
		return s->err;
	err = out_reopen(s, "");
	if (s->owned && close(s->fd) < 0 && !err)
		err = -errno;
	free(s->buf);
	*s = (struct out_sink){ .fd = -1, .err = err, .lost = s->lost };
	return err;
}
