/*
 * The kinds of outputs: for events a file with rotation, a pipe, HTTP, ClickHouse; for profiles a store's HTTP, a folder.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/ends.h"
#include "base/strbuf.h"
#include "cmd/serve/config.h"
#include "cmd/serve/item.h"
#include "cmd/serve/output.h"
#include "cmd/serve/web.h"

enum { PIPE_WAIT_MS = 1000 };

/* A file or a pipe. */
struct local {
	const struct serve_output *conf;
	int fd;
	uint64_t size;
};

static int fail(struct strbuf *err, const char *path, int e)
{
	strbuf_printf(err, "%s: %s", path, strerror(-e));
	return e;
}

static int new_local(const struct serve_output *conf, int fd, void **state)
{
	struct local *l = malloc(sizeof(*l));
	struct stat st;

	if (!l) {
		close(fd);
		return -ENOMEM;
	}
	*l = (struct local){ conf, fd, fstat(fd, &st) ? 0 : (uint64_t)st.st_size };
	*state = l;
	return 0;
}

static void close_local(void *state)
{
	struct local *l = state;

	if (l->fd >= 0)
		close(l->fd);
	free(l);
}

/* --- a file -------------------------------------------------------------------------------------------- */

/*
 * A regular file, which no link leads elsewhere.  One that somebody else has put there is refused: its owner would read what
 * other users' programs do.
 */
static int open_file(const char *path)
{
	int fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0640);
	struct stat st = { 0 };

	if (fd < 0)
		return -errno;
	if (!fstat(fd, &st) && S_ISREG(st.st_mode) && (!st.st_uid || st.st_uid == geteuid()))
		return fd;
	close(fd);
	return S_ISREG(st.st_mode) ? -EPERM : -EINVAL;
}

static int file_begin(const struct serve_output *conf, const atomic_ullong *until_ms, void **state, struct strbuf *err)
{
	int fd = open_file(conf->target);
	int e = fd < 0 ? fd : new_local(conf, fd, state);

	(void)until_ms;
	return e ? fail(err, conf->target, e) : 0;
}

/* PATH.1 is the newest of the old ones; a new file is opened next. */
static void rotate(struct local *l)
{
	struct strbuf from = { 0 }, to = { 0 };

	for (unsigned int i = l->conf->count; i > 0; i--) {
		strbuf_clear(&from);
		strbuf_clear(&to);
		strbuf_puts(&from, l->conf->target);
		if (i > 1)
			strbuf_printf(&from, ".%u", i - 1);
		strbuf_printf(&to, "%s.%u", l->conf->target, i);
		rename(strbuf_str(&from), strbuf_str(&to));
	}
	if (!l->conf->count)
		unlink(l->conf->target);
	strbuf_fini(&from);
	strbuf_fini(&to);
	close(l->fd);
	l->fd = -1;
	l->size = 0;
}

/* Whole lines from @text that fit, at least one. */
static size_t lines_of(const char *text, size_t len, uint64_t room)
{
	const char *end;

	if (len <= room)
		return len;
	end = memrchr(text, '\n', (size_t)room);
	if (!end)
		end = memchr(text, '\n', len);
	return (size_t)(end - text) + 1;
}

static enum output_result file_deliver(void *state, const struct strbuf *text, size_t *done, struct strbuf *why)
{
	struct local *l = state;

	while (*done < text->len) {
		uint64_t room = l->size < l->conf->size ? l->conf->size - l->size : 0;
		size_t n = lines_of(text->s + *done, text->len - *done, room);
		ssize_t written;

		if (l->size && n > room) {
			rotate(l);
			continue;
		}
		if (l->fd < 0)		/* after a rotation */
			l->fd = open_file(l->conf->target);
		if (l->fd < 0) {
			fail(why, l->conf->target, l->fd);
			return OUTPUT_LATER;
		}
		written = write(l->fd, text->s + *done, n);
		if (written == (ssize_t)n) {
			*done += n;
			l->size += n;
			continue;
		}
		fail(why, l->conf->target, written < 0 ? -errno : -ENOSPC);
		if (written > 0 && ftruncate(l->fd, (off_t)l->size))	/* no half lines */
			l->size += (uint64_t)written;
		return OUTPUT_LATER;
	}
	return OUTPUT_DONE;
}

/* --- a pipe -------------------------------------------------------------------------------------------- */

static int pipe_begin(const struct serve_output *conf, const atomic_ullong *until_ms, void **state, struct strbuf *err)
{
	int fd = open(conf->target, O_WRONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC), e;
	struct stat st;

	(void)until_ms;
	if (fd < 0) {
		e = -errno;
		strbuf_printf(err, "%s: %s", conf->target, e == -ENXIO ? "nobody reads from this pipe" : strerror(-e));
		return e;
	}
	if (fstat(fd, &st) || !S_ISFIFO(st.st_mode)) {
		close(fd);
		strbuf_printf(err, "%s is no pipe: mkfifo makes one", conf->target);
		return -EINVAL;
	}
	e = new_local(conf, fd, state);
	return e ? fail(err, conf->target, e) : 0;
}

/* A reader that has gone may have got a part of a line: the next one gets all of it. */
static enum output_result pipe_lost(struct local *l, const struct strbuf *text, size_t *done, struct strbuf *why)
{
	const char *line = memrchr(text->s, '\n', *done);

	*done = line ? (size_t)(line - text->s) + 1 : 0;
	close(l->fd);
	l->fd = -1;
	strbuf_printf(why, "%s: its reader has gone", l->conf->target);
	return OUTPUT_LATER;
}

static enum output_result pipe_deliver(void *state, const struct strbuf *text, size_t *done, struct strbuf *why)
{
	struct local *l = state;

	if (l->fd < 0)
		l->fd = open(l->conf->target, O_WRONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (l->fd < 0) {
		strbuf_printf(why, "%s: %s", l->conf->target, errno == ENXIO ? "nobody reads from this pipe" : strerror(errno));
		return OUTPUT_LATER;
	}
	while (*done < text->len) {
		struct pollfd p = { .fd = l->fd, .events = POLLOUT };
		ssize_t n = write(l->fd, text->s + *done, text->len - *done);

		if (n > 0) {
			*done += (size_t)n;
		} else if (n < 0 && errno == EPIPE) {
			return pipe_lost(l, text, done, why);
		} else if (n < 0 && errno != EAGAIN && errno != EINTR) {
			fail(why, l->conf->target, -errno);
			return OUTPUT_LATER;
		} else if (!poll(&p, 1, PIPE_WAIT_MS)) {
			strbuf_printf(why, "%s: its reader does not read", l->conf->target);
			return OUTPUT_LATER;
		}
	}
	return OUTPUT_DONE;
}

/* --- HTTP ---------------------------------------------------------------------------------------------- */

struct remote {
	const struct serve_output *conf;
	struct web *web;
	struct strbuf url, headers[4];
	const char *header_texts[5];
};

static void add_header(struct remote *r, const char *name, const char *value)
{
	size_t n = 0;

	while (r->header_texts[n])
		n++;
	strbuf_printf(&r->headers[n], "%s: %s", name, value);
	r->header_texts[n] = strbuf_str(&r->headers[n]);
}

static void close_remote(void *state)
{
	struct remote *r = state;

	web_close(r->web);
	strbuf_fini(&r->url);
	for (size_t i = 0; i < sizeof(r->headers) / sizeof(r->headers[0]); i++)
		strbuf_fini(&r->headers[i]);
	free(r);
}

static int open_remote(struct remote *r, const atomic_ullong *until_ms, void **state, struct strbuf *err)
{
	const struct web_conf conf = { .ca = r->conf->ca, .headers = r->header_texts,
				       .timeout_s = r->conf->timeout_s, .until_ms = until_ms };
	int e = web_open(&conf, &r->web, err);

	if (e)
		close_remote(r);
	else
		*state = r;
	return e;
}

static int begin_http(const struct serve_output *conf, const char *type, const atomic_ullong *until_ms, void **state,
		      struct strbuf *err)
{
	struct remote *r = calloc(1, sizeof(*r));
	struct strbuf bearer = { 0 };

	if (!r)
		return fail(err, conf->target, -ENOMEM);
	r->conf = conf;
	strbuf_puts(&r->url, conf->target);
	add_header(r, "Content-Type", type);
	if (conf->token) {
		strbuf_printf(&bearer, "Bearer %s", conf->token);
		add_header(r, "Authorization", strbuf_str(&bearer));
		strbuf_fini(&bearer);
	}
	return open_remote(r, until_ms, state, err);
}

static int http_begin(const struct serve_output *conf, const atomic_ullong *until_ms, void **state, struct strbuf *err)
{
	return begin_http(conf, "application/x-ndjson", until_ms, state, err);
}

static int pprof_begin(const struct serve_output *conf, const atomic_ullong *until_ms, void **state, struct strbuf *err)
{
	return begin_http(conf, "application/octet-stream", until_ms, state, err);
}

/*
 * ClickHouse's HTTP interface: the query in the address, the rows in the body.  Columns that an older schema does not have
 * are left out.
 */
static int clickhouse_begin(const struct serve_output *conf, const atomic_ullong *until_ms, void **state, struct strbuf *err)
{
	struct remote *r = calloc(1, sizeof(*r));
	struct strbuf query = { 0 };
	size_t len;

	if (!r)
		return fail(err, conf->target, -ENOMEM);
	r->conf = conf;
	len = strlen(conf->target);
	strbuf_add(&r->url, conf->target, conf->target[len - 1] == '/' ? len - 1 : len);
	strbuf_puts(&r->url, "/?input_format_skip_unknown_fields=1&query=");
	strbuf_printf(&query, "INSERT INTO %s.%s FORMAT JSONEachRow", conf->database, conf->table);
	item_escape(strbuf_str(&query), &r->url);
	strbuf_fini(&query);
	add_header(r, "Content-Type", "application/x-ndjson");
	if (conf->user)
		add_header(r, "X-ClickHouse-User", conf->user);
	if (conf->password)
		add_header(r, "X-ClickHouse-Key", conf->password);
	return open_remote(r, until_ms, state, err);
}

/* Is the batch at fault, so that it would be refused again?  Bad Request, Payload Too Large, Unprocessable Content. */
static bool is_at_fault(int status)
{
	return status == 400 || status == 413 || status == 422;
}

/* Post to @r->url. */
static enum output_result post(struct remote *r, const char *data, size_t len, struct strbuf *why)
{
	struct strbuf answer = { 0 };
	int status = web_post(r->web, strbuf_str(&r->url), data, len, &answer);
	enum output_result result = status >= 200 && status < 300 ? OUTPUT_DONE : is_at_fault(status) ? OUTPUT_REFUSED : OUTPUT_LATER;

	for (char *p = answer.s; p && *p; p++)		/* a line, without what a terminal obeys */
		*p = (unsigned char)*p < 0x20 || *p == 0x7f ? ' ' : *p;
	if (status < 0)
		strbuf_printf(why, "%s: %s", r->conf->target, strbuf_str(&answer));
	else if (result != OUTPUT_DONE)
		strbuf_printf(why, "%s answers %d: %.300s", r->conf->target, status, strbuf_str(&answer));
	strbuf_fini(&answer);
	return result;
}

static enum output_result remote_deliver(void *state, const struct strbuf *text, size_t *done, struct strbuf *why)
{
	enum output_result result = post(state, text->s, text->len, why);

	if (result == OUTPUT_DONE)
		*done = text->len;
	return result;
}

/* The only item of @text.  False: it is none, as after damage of the spool. */
static bool read_item(const struct strbuf *text, struct item *i, struct strbuf *why)
{
	if (item_read(strbuf_str(text), text->len, i))
		return true;
	strbuf_puts(why, "it is damaged");
	return false;
}

static enum output_result pprof_deliver(void *state, const struct strbuf *text, size_t *done, struct strbuf *why)
{
	struct remote *r = state;
	enum output_result result;
	struct item i;

	if (!read_item(text, &i, why))
		return OUTPUT_REFUSED;
	strbuf_clear(&r->url);
	item_address(&i, r->conf->target, &r->url);
	result = post(r, i.bytes, i.nbytes, why);
	if (result == OUTPUT_DONE)
		*done = text->len;
	return result;
}

/* --- a folder of profiles ------------------------------------------------------------------------------ */

#define PROFILE_SUFFIX ".pb.gz"

/* Others cannot write to it, so that the files that are removed are the service's own. */
static int folder_begin(const struct serve_output *conf, const atomic_ullong *until_ms, void **state, struct strbuf *err)
{
	struct stat st;
	int fd, e;

	(void)until_ms;
	mkdir(conf->target, 0750);
	fd = open(conf->target, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st)) {
		e = -errno;
	} else if (st.st_uid != geteuid() || (st.st_mode & 022)) {
		strbuf_printf(err, "%s: the folder for profiles is not the service's own, or others can write to it", conf->target);
		close(fd);
		return -EPERM;
	} else {
		e = new_local(conf, fd, state);
		fd = -1;
		if (!e)
			((struct local *)*state)->size = conf->size;	/* not known: make_room() looks */
	}
	if (fd >= 0)
		close(fd);
	return e ? fail(err, conf->target, e) : 0;
}

/* SCRIPT-FROM-RUN-NUMBER.pb.gz, with the type of a script's aggregation behind the script. */
static void put_name(const struct item *i, struct strbuf *out)
{
	static const char *const parts[] = { "script", "type", "from", "run", "number" };

	for (size_t k = 0; k < sizeof(parts) / sizeof(parts[0]); k++) {
		size_t len = out->len;

		strbuf_puts(out, len ? "-" : "");
		item_value(i, parts[k], out);
		if (len && out->len == len + 1)		/* it has none */
			out->s[--out->len] = 0;
	}
	strbuf_puts(out, PROFILE_SUFFIX);
}

/* Look at the profiles of the folder: their bytes together, and in @oldest the name of the oldest one. */
static int look_into(const struct local *l, uint64_t *bytes, struct strbuf *oldest)
{
	int fd = openat(l->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), e;
	DIR *d = fd < 0 ? NULL : fdopendir(fd);
	struct timespec first = { 0 };
	const struct dirent *entry;
	struct stat st;

	if (!d) {
		e = -errno;
		if (fd >= 0)
			close(fd);
		return e;
	}
	*bytes = 0;
	strbuf_clear(oldest);
	while ((entry = readdir(d))) {
		if (!ends_with(entry->d_name, PROFILE_SUFFIX) || fstatat(l->fd, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) ||
		    !S_ISREG(st.st_mode))
			continue;
		*bytes += (uint64_t)st.st_size;
		if (oldest->len && (st.st_mtim.tv_sec > first.tv_sec ||
				    (st.st_mtim.tv_sec == first.tv_sec && st.st_mtim.tv_nsec >= first.tv_nsec)))
			continue;
		first = st.st_mtim;
		strbuf_clear(oldest);
		strbuf_puts(oldest, entry->d_name);
	}
	closedir(d);
	return 0;
}

/* Remove the oldest profiles until @more bytes have room. */
static void make_room(struct local *l, uint64_t more)
{
	struct strbuf oldest = { 0 };

	while (l->size + more > l->conf->size && !look_into(l, &l->size, &oldest) && oldest.len &&
	       l->size + more > l->conf->size && !unlinkat(l->fd, strbuf_str(&oldest), 0))
		;
	strbuf_fini(&oldest);
}

/* Write @i as a file that is there as a whole or not at all. */
static int write_item(const struct local *l, const struct item *i)
{
	struct strbuf name = { 0 };
	int fd, e = 0;

	put_name(i, &name);
	unlinkat(l->fd, "new", 0);
	fd = openat(l->fd, "new", O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0640);
	if (fd < 0)
		e = -errno;
	for (size_t at = 0; !e && at < i->nbytes;) {
		ssize_t n = write(fd, i->bytes + at, i->nbytes - at);

		e = n > 0 ? 0 : n < 0 ? -errno : -ENOSPC;
		at += n > 0 ? (size_t)n : 0;
	}
	if (fd >= 0 && close(fd) && !e)
		e = -errno;
	if (!e && renameat(l->fd, "new", l->fd, strbuf_str(&name)))
		e = -errno;
	if (e && fd >= 0)
		unlinkat(l->fd, "new", 0);
	strbuf_fini(&name);
	return e;
}

static enum output_result folder_deliver(void *state, const struct strbuf *text, size_t *done, struct strbuf *why)
{
	struct local *l = state;
	struct item i;
	int e;

	if (!read_item(text, &i, why))
		return OUTPUT_REFUSED;
	make_room(l, i.nbytes);
	e = write_item(l, &i);
	if (e) {
		fail(why, l->conf->target, e);
		return OUTPUT_LATER;
	}
	l->size += i.nbytes;
	*done = text->len;
	return OUTPUT_DONE;
}

const struct output_kind output_kinds[] = {
	[SERVE_FILE] = { "file", EVENT_LINE, file_begin, file_deliver, close_local },
	[SERVE_PIPE] = { "pipe", EVENT_LINE, pipe_begin, pipe_deliver, close_local },
	[SERVE_HTTP] = { "http", EVENT_LINE, http_begin, remote_deliver, close_remote },
	[SERVE_PPROF] = { "pprof", EVENT_LINE, pprof_begin, pprof_deliver, close_remote },
	[SERVE_FOLDER] = { "folder", EVENT_LINE, folder_begin, folder_deliver, close_local },
	[SERVE_CLICKHOUSE] = { "clickhouse", EVENT_ROW, clickhouse_begin, remote_deliver, close_remote },
};
