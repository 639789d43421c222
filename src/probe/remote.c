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
	uint8_t bytes[REMOTE_PAGE];
};

int remote_init(struct remote *r, uint32_t pid)
{
	*r = (struct remote){ .pid = pid, .fd = (int)syscall(SYS_pidfd_open, pid, 0) };
	if (r->fd < 0)
		return -errno;
	r->pages = calloc(PAGES, sizeof(*r->pages));
	return r->pages ? 0 : -ENOMEM;
}

void remote_fini(struct remote *r)
{
	if (r->fd > 0)
		close(r->fd);
	free(r->pages);
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

bool remote_get(const struct remote *r, uint64_t addr, void *buf, size_t n)
{
	uint64_t start = addr & ~(uint64_t)(REMOTE_PAGE - 1), at = addr - start;
	struct remote_page *p = &r->pages[start / REMOTE_PAGE % PAGES];

	if (!start || at + n > REMOTE_PAGE)
		return remote_get_now(r, addr, buf, n);
	if (p->addr != start) {
		p->addr = 0;
		if (!remote_get_now(r, start, p->bytes, REMOTE_PAGE))
			return false;
		p->addr = start;
	}
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
	for (int i = 0; i < PAGES; i++)
		r->pages[i].addr = 0;
}
