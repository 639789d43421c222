#include "cmd/serve/spool.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/grow.h"
#include "base/strbuf.h"

enum { NAME = 64, BATCH_MAX = 64 << 20 };

struct batch {
	uint64_t number, events, bytes;
};

struct spool {
	int dir;
	char *path;
	const char *suffix;
	uint64_t max_bytes, bytes, next;
	struct batch *v;		/* the oldest first; from @first on */
	size_t first, n, cap;
};

static const char *name_of(const struct spool *s, const struct batch *b, char name[static NAME])
{
	snprintf(name, NAME, "%016" PRIx64 "-%" PRIu64 ".%s", b->number, b->events, s->suffix);
	return name;
}

static int by_number(const void *a, const void *b)
{
	const struct batch *x = a, *y = b;

	return (x->number > y->number) - (x->number < y->number);
}

/* Take in what is there; what a writer left half done is removed. */
static int scan(struct spool *s)
{
	int fd = dup(s->dir);
	DIR *d = fd < 0 ? NULL : fdopendir(fd);
	const struct dirent *entry;
	char name[NAME];

	if (!d) {
		if (fd >= 0)
			close(fd);
		return -errno;
	}
	while ((entry = readdir(d))) {
		struct batch b = { 0 };
		struct stat st;

		if (!strcmp(entry->d_name, "new"))
			unlinkat(s->dir, "new", 0);
		if (sscanf(entry->d_name, "%16" SCNx64 "-%" SCNu64 ".", &b.number, &b.events) != 2 ||
		    strcmp(name_of(s, &b, name), entry->d_name) || fstatat(s->dir, name, &st, AT_SYMLINK_NOFOLLOW) ||
		    !S_ISREG(st.st_mode) || !grow_array(&s->v, &s->cap, s->n, sizeof(*s->v)))
			continue;
		b.bytes = (uint64_t)st.st_size;
		s->bytes += b.bytes;
		s->next = b.number >= s->next ? b.number + 1 : s->next;
		s->v[s->n++] = b;
	}
	closedir(d);
	if (s->n)
		qsort(s->v, s->n, sizeof(*s->v), by_number);
	return 0;
}

static int fail(struct strbuf *err, int e, const char *path, const char *why)
{
	strbuf_printf(err, "%s: %s", path, why ? why : strerror(-e));
	return e;
}

int spool_open(const char *path, const char *suffix, uint64_t max_bytes, struct spool **ret, struct strbuf *err)
{
	struct spool *s = calloc(1, sizeof(*s));
	struct stat st;
	int e;

	if (!s)
		return fail(err, -ENOMEM, path, NULL);
	s->suffix = suffix;
	s->max_bytes = max_bytes;
	s->path = strdup(path);
	mkdir(path, 0700);
	s->dir = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (s->dir < 0 || fstat(s->dir, &st))
		e = fail(err, -errno, path, NULL);
	else if (st.st_uid != geteuid() || (st.st_mode & 022))
		e = fail(err, -EPERM, path, "the folder for events is not the service's own, or others can write to it");
	else if (flock(s->dir, LOCK_EX | LOCK_NB))
		e = fail(err, -EBUSY, path, "another service uses this folder");
	else if ((e = scan(s)))
		fail(err, e, path, NULL);
	if (e) {
		spool_close(s);
		return e;
	}
	*ret = s;
	return 0;
}

void spool_close(struct spool *s)
{
	if (!s)
		return;
	if (s->dir >= 0)
		close(s->dir);
	free(s->path);
	free(s->v);
	free(s);
}

size_t spool_batches(const struct spool *s)
{
	return s->n - s->first;
}

uint64_t spool_bytes(const struct spool *s)
{
	return s->bytes;
}

void spool_remove(struct spool *s)
{
	struct batch *b = &s->v[s->first];
	char name[NAME];

	unlinkat(s->dir, name_of(s, b, name), 0);
	s->bytes -= b->bytes;
	if (++s->first == s->n)
		s->first = s->n = 0;
}

/* Batches leave at the front: move the others there when half of the array is empty. */
static void compact(struct spool *s)
{
	if (s->first < 64 || s->first * 2 < s->n)
		return;
	memmove(s->v, &s->v[s->first], (s->n - s->first) * sizeof(*s->v));
	s->n -= s->first;
	s->first = 0;
}

static int write_whole(int fd, const struct strbuf *text)
{
	for (size_t done = 0; done < text->len;) {
		ssize_t n = write(fd, text->s + done, text->len - done);

		if (n < 0 && errno != EINTR)
			return -errno;
		done += n > 0 ? (size_t)n : 0;
	}
	return fdatasync(fd) ? -errno : 0;
}

int spool_add(struct spool *s, const struct strbuf *text, uint64_t events, uint64_t *lost)
{
	struct batch b = { s->next, events, text->len };
	char name[NAME];
	int fd, e;

	if (text->len > s->max_bytes)
		return -EFBIG;
	compact(s);
	if (!grow_array(&s->v, &s->cap, s->n, sizeof(*s->v)))
		return -ENOMEM;
	while (s->bytes + text->len > s->max_bytes) {
		*lost += s->v[s->first].events;
		spool_remove(s);
	}
	fd = openat(s->dir, "new", O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	e = write_whole(fd, text);
	close(fd);
	if (!e && renameat(s->dir, "new", s->dir, name_of(s, &b, name)))
		e = -errno;
	if (e) {
		unlinkat(s->dir, "new", 0);
		return e;
	}
	s->v[s->n++] = b;
	s->bytes += b.bytes;
	s->next++;
	return 0;
}

int spool_first(struct spool *s, struct strbuf *text, uint64_t *events, uint64_t *lost)
{
	char name[NAME];

	while (s->first < s->n) {
		const struct batch *b = &s->v[s->first];
		int fd = openat(s->dir, name_of(s, b, name), O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
		struct file *f = NULL;
		int e = fd < 0 ? -errno : file_from(fd, name, &f, NULL);

		if (!e)
			e = file_text(f, BATCH_MAX, text);
		file_close(f);
		*events = b->events;
		if (!e)
			return 0;
		strbuf_clear(text);
		*lost += b->events;
		spool_remove(s);
	}
	return -ENOENT;
}
