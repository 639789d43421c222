#include "probe/remote.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

enum { PAGES = 256 };			/* pages in the cache */

struct remote_page {
	uint64_t addr;			/* 0: none */
	uint32_t read, asked;		/* the turns in which it was read, and last asked for */
	uint8_t bytes[REMOTE_PAGE];
};

struct remote_cache {
	uint32_t turn;			/* remote_forget() begins the next one: pages of earlier ones are read anew */
	struct remote_page pages[PAGES];
};

int remote_init(struct remote *r, uint32_t pid)
{
	*r = (struct remote){ .pid = pid, .fd = (int)syscall(SYS_pidfd_open, pid, 0) };
	if (r->fd < 0)
		return -errno;
	r->cache = calloc(1, sizeof(*r->cache));
	if (!r->cache)
		return -ENOMEM;
	r->cache->turn = 1;
	return 0;
}

void remote_fini(struct remote *r)
{
	if (r->fd > 0)
		close(r->fd);
	free(r->cache);
	*r = (struct remote){ 0 };
}

bool remote_lives(const struct remote *r)
{
	struct pollfd p = { .fd = r->fd, .events = POLLIN };

	return poll(&p, 1, 0) == 0;
}

bool remote_get_now(const struct remote *r, uint64_t addr, void *buf, size_t n)
{
	struct iovec to = { buf, n }, from = { (void *)(uintptr_t)addr, n };

	return process_vm_readv((pid_t)r->pid, &to, 1, &from, 1, 0) == (ssize_t)n;
}

/*
 * Read @p, and with it the pages that were asked for in the last two turns: who reads stacks twice, and those of many
 * threads, needs the same pages, and one call for all costs less than one for each.  False, and errno: @p cannot be
 * read.
 */
static bool read_pages(const struct remote *r, struct remote_page *p)
{
	struct remote_cache *c = r->cache;
	struct remote_page *v[PAGES];
	struct iovec to[PAGES] = { { 0 } }, from[PAGES] = { { 0 } };
	size_t n = 1;
	ssize_t got;

	v[0] = p;
	for (struct remote_page *q = c->pages; q < c->pages + PAGES; q++)
		if (n < PAGES && q != p && q->addr && q->read != c->turn && c->turn - q->asked <= 2)
			v[n++] = q;
	for (size_t i = 0; i < n; i++) {
		to[i] = (struct iovec){ v[i]->bytes, REMOTE_PAGE };
		from[i] = (struct iovec){ (void *)(uintptr_t)v[i]->addr, REMOTE_PAGE };
	}
	got = process_vm_readv((pid_t)r->pid, to, n, from, n, 0);
	/* It ends at the first page that cannot be read. */
	for (size_t i = 0; i < n && got >= (ssize_t)((i + 1) * REMOTE_PAGE); i++)
		v[i]->read = c->turn;
	if (got >= REMOTE_PAGE)
		return true;
	p->addr = 0;
	return false;
}

bool remote_get(const struct remote *r, uint64_t addr, void *buf, size_t n)
{
	uint64_t start = addr & ~(uint64_t)(REMOTE_PAGE - 1), at = addr - start;
	struct remote_page *p = &r->cache->pages[start / REMOTE_PAGE % PAGES];

	if (!start || at + n > REMOTE_PAGE)
		return remote_get_now(r, addr, buf, n);
	if (p->addr != start || p->read != r->cache->turn) {
		p->addr = start;
		if (!read_pages(r, p))
			return false;
	}
	p->asked = r->cache->turn;
	memcpy(buf, p->bytes + at, n);
	return true;
}

uint64_t remote_word(const struct remote *r, uint64_t addr)
{
	uint64_t v;

	return remote_get(r, addr, &v, sizeof(v)) ? v : 0;
}

uint32_t remote_int(const struct remote *r, uint64_t addr)
{
	uint32_t v;

	return remote_get(r, addr, &v, sizeof(v)) ? v : 0;
}

void remote_forget(const struct remote *r)
{
	r->cache->turn++;
}
