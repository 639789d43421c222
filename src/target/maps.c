#include "target/maps.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>

#include "target/priv.h"

/* The rest of a line. */
struct line {
	char *s, *end;
};

/* A number in base @base, at most 64 bits, and the character @behind that follows it. */
static bool take_number(struct line *l, unsigned int base, char behind, uint64_t *ret)
{
	const char *first = l->s;
	uint64_t v = 0;
	unsigned int d;

	for (; l->s < l->end; l->s++) {
		if (*l->s >= '0' && *l->s <= '9')
			d = (unsigned int)(*l->s - '0');
		else if (*l->s >= 'a' && *l->s <= 'f')
			d = (unsigned int)(*l->s - 'a') + 10;
		else
			break;
		if (d >= base || v > (UINT64_MAX - d) / base)
			return false;
		v = v * base + d;
	}
	if (l->s == first)
		return false;
	*ret = v;
	if (l->s == l->end)
		return behind == '\n';
	return *l->s++ == behind;
}

/* "rwxp ": - for what is not allowed, s for a shared mapping. */
static bool take_rights(struct line *l, struct target_map *m)
{
	const char *s = l->s;

	if (l->end - s < 5 || s[4] != ' ')
		return false;
	m->is_readable = s[0] == 'r';
	m->is_writable = s[1] == 'w';
	m->is_exec = s[2] == 'x';
	m->is_shared = s[3] == 's';
	l->s += 5;
	return true;
}

/* The rest of the line: unescaped in place, and ended by a NUL in place of the newline. */
static const char *take_path(struct line *l, bool *is_deleted)
{
	static const char deleted[] = " (deleted)";
	size_t len, tail = sizeof(deleted) - 1;
	char *path, *to;

	while (l->s < l->end && *l->s == ' ')
		l->s++;
	for (path = to = l->s; l->s < l->end; l->s++) {
		if (l->end - l->s >= 4 && !memcmp(l->s, "\\012", 4)) {
			*to++ = '\n';
			l->s += 3;
		} else {
			*to++ = *l->s;
		}
	}
	len = (size_t)(to - path);
	*is_deleted = len > tail && !memcmp(to - tail, deleted, tail);
	path[*is_deleted ? len - tail : len] = '\0';
	return path;
}

/* START-END RIGHTS OFFSET MAJOR:MINOR INODE   PATH */
static bool parse_line(struct line *l, struct target_map *m)
{
	uint64_t maj, min;

	if (!take_number(l, 16, '-', &m->start) || !take_number(l, 16, ' ', &m->end) || m->end < m->start ||
	    !take_rights(l, m) || !take_number(l, 16, ' ', &m->off) ||
	    !take_number(l, 16, ':', &maj) || !take_number(l, 16, ' ', &min))
		return false;
	m->dev = makedev((unsigned int)maj, (unsigned int)min);
	if (memchr(l->s, ' ', (size_t)(l->end - l->s)) ? !take_number(l, 10, ' ', &m->ino)
						       : !take_number(l, 10, '\n', &m->ino))
		return false;
	m->path = take_path(l, &m->is_deleted);
	return true;
}

int maps_parse(const char *text, size_t len, struct target_maps *ret)
{
	struct target_maps m = { 0 };
	size_t lines = 1, i;
	struct line l;
	char *end, *next;

	for (i = 0; i < len; i++)
		lines += text[i] == '\n';
	m.paths = malloc(len + 1);
	m.v = calloc(lines, sizeof(*m.v));
	if (!m.paths || !m.v) {
		target_maps_fini(&m);
		return -ENOMEM;
	}
	if (len)
		memcpy(m.paths, text, len);
	end = m.paths + len;
	for (l.s = m.paths; l.s < end; l.s = next) {
		l.end = memchr(l.s, '\n', (size_t)(end - l.s));
		if (!l.end)
			l.end = end;
		next = l.end + 1;
		if (memchr(l.s, '\0', (size_t)(l.end - l.s)) || !parse_line(&l, &m.v[m.n++])) {
			target_maps_fini(&m);
			return -EBADMSG;
		}
	}
	*ret = m;
	return 0;
}

void target_maps_fini(struct target_maps *m)
{
	free(m->v);
	free(m->paths);
	memset(m, 0, sizeof(*m));
}

int maps_read(uint32_t pid, struct target_maps *ret)
{
	struct strbuf text = { 0 };
	int err = proc_read((pid_t)pid, "maps", &text);

	if (!err)
		err = maps_parse(strbuf_str(&text), text.len, ret);
	strbuf_fini(&text);
	return err;
}

int target_maps(const struct target *t, struct target_maps *ret, struct strbuf *why)
{
	int err = maps_read((uint32_t)t->pid, ret);

	if (!err && !ret->n) {		/* a zombie has no memory */
		target_maps_fini(ret);
		err = -ESRCH;
	}
	if (err)
		target_fail_errno(why, err, "cannot read what process %d has mapped", (int)t->pid);
	return err;
}
