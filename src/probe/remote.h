/*
 * The memory of another, running process (process_vm_readv(2)), read by whole pages, since related data is often
 * adjacent.  Pages are cached until remote_forget(); those that were used before are then read together.
 */
#ifndef DTAP_PROBE_REMOTE_H
#define DTAP_PROBE_REMOTE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { REMOTE_PAGE = 4096 };

struct remote {
	uint32_t pid;
	int fd;				/* pidfd_open(2) */
	struct remote_cache *cache;
};

/*
 * 0; -ENOMEM; errors of pidfd_open(2), -ESRCH: no such process.  remote_fini() accepts a zeroed one, and one for which
 * remote_init() failed.
 */
int remote_init(struct remote *r, uint32_t pid);
void remote_fini(struct remote *r);

/* Does the process still exist?  If so, all that was read was its own; a later one can have the same pid. */
bool remote_lives(const struct remote *r);

/* Copy @n bytes at @addr.  False, and errno: they cannot be read. */
bool remote_get(const struct remote *r, uint64_t addr, void *buf, size_t n);

/* The same, without the cache. */
bool remote_get_now(const struct remote *r, uint64_t addr, void *buf, size_t n);

/* The word at @addr; 0 if it cannot be read. */
uint64_t remote_word(const struct remote *r, uint64_t addr);

/* The same for an int. */
uint32_t remote_int(const struct remote *r, uint64_t addr);

void remote_forget(const struct remote *r);

#endif
