#include "lang/source.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/arena.h"

enum { SOURCE_MAX = 16 << 20 };

struct source *source_text(struct arena *a, const char *name, const char *text, size_t len)
{
	struct source *s = arena_new_of(a, struct source);

	s->name = arena_strdup(a, name);
	s->text = arena_strndup(a, text, len);
	s->len = len;
	return s;
}

bool source_is_in(const struct source *src, const struct source *of)
{
	return src && (src == of || src == of->orig || src->within == of);
}

int source_read(struct arena *a, const char *path, struct source **ret)
{
	bool is_stdin = !strcmp(path, "-");
	size_t len = 0, cap = 0;
	char *text = NULL, *p;
	int fd, err = 0;
	ssize_t n;

	fd = is_stdin ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	for (;;) {
		if (len == cap) {
			cap = cap ? cap * 2 : 16 * 1024;
			p = realloc(text, cap);
			if (!p) {
				err = -ENOMEM;
				break;
			}
			text = p;
		}
		n = read(fd, text + len, cap - len);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			err = -errno;
		if (n <= 0)
			break;
		len += (size_t)n;
		if (len > SOURCE_MAX) {
			err = -EFBIG;
			break;
		}
	}
	if (!is_stdin)
		close(fd);
	if (!err)
		*ret = source_text(a, is_stdin ? "<stdin>" : path, text, len);
	free(text);
	return err;
}

const char *source_line(const struct source *src, unsigned int line, size_t *len)
{
	const char *p = src->text, *end = src->text + src->len, *nl;

	*len = 0;
	if (!line)
		return "";
	while (--line) {
		nl = memchr(p, '\n', (size_t)(end - p));
		if (!nl)
			return "";
		p = nl + 1;
	}
	nl = memchr(p, '\n', (size_t)(end - p));
	*len = (size_t)((nl ? nl : end) - p);
	return p;
}
