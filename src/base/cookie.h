/*
 * Identifies our sockets among the descriptors of a traced program, which may close any descriptor and reuse its
 * number.  The kernel gives each socket a unique number that is never reused (SO_COOKIE, Linux 4.12).
 */
#ifndef DTAP_BASE_COOKIE_H
#define DTAP_BASE_COOKIE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#ifndef SO_COOKIE
#define SO_COOKIE 57
#endif

/* 0: @fd is not a socket. */
static inline uint64_t cookie_of(int fd)
{
	uint64_t cookie = 0;
	socklen_t size = sizeof(cookie);

	if (getsockopt(fd, SOL_SOCKET, SO_COOKIE, &cookie, &size) < 0)
		return 0;
	return cookie;
}

struct cookie_fd {
	int fd;			/* -1: none */
	uint64_t cookie;
};

/* Is the descriptor still the same socket? */
static inline bool cookie_same(const struct cookie_fd *c)
{
	return c->fd >= 0 && c->cookie && cookie_of(c->fd) == c->cookie;
}

#endif
