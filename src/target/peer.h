/*
 * A peer: a process whose identity and rights have been verified.  Channels serve peers (agent.h).
 *
 * A process is identified by a pidfd, and by what /proc shows while the pidfd's process lives.  A trust domain is a set
 * of processes that may change each other's memory by the kernel's rules (ptrace(2), "Ptrace access mode checking"):
 * the same users and groups, user, pid and mount namespace, capability sets and security label.  Memory that processes
 * can write is shared within one domain, never between domains.  If any of this cannot be read, the process is a domain
 * of its own.
 */
#ifndef DTAP_TARGET_PEER_H
#define DTAP_TARGET_PEER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct strbuf;

enum { DOMAIN_IDS = 4, DOMAIN_SPACES = 3, DOMAIN_CAPS = 5, DOMAIN_LABEL = 256 };

struct domain {
	uint32_t uids[DOMAIN_IDS], gids[DOMAIN_IDS];	/* real, effective, saved, file system */
	struct { uint64_t dev, ino; } spaces[DOMAIN_SPACES];	/* user, pid, mount */
	uint64_t caps[DOMAIN_CAPS];	/* inheritable, permitted, effective, bounding, ambient */
	char label[DOMAIN_LABEL];	/* "": there is no security module with labels */
	uint64_t own_pid, own_start;	/* not 0: this process alone, because not everything could be read */
};

struct peer {
	pid_t pid;		/* in the tracer's pid namespace */
	int pidfd;		/* of that process; owned */
	uint64_t start;		/* when it started, in clock ticks since boot */
	struct domain domain;	/* at the time of peer_prove() */
};

/*
 * Identify process @pid and read its domain.  @pidfd: a pidfd of it, which the caller keeps; -1: none, one is opened.
 * -ESRCH: there is no such process, or it has ended; others as pidfd_open(2).  One line in @why.
 */
int peer_prove(pid_t pid, int pidfd, struct peer *ret, struct strbuf *why);
void peer_fini(struct peer *p);		/* accepts a zeroed one */

/* Has it not ended yet? */
bool peer_lives(const struct peer *p);

/* Is it exiting or has it ended?  Its namespaces cannot be read any more then. */
bool peer_is_ending(const struct peer *p);

/* Is it still in its domain?  A process leaves it by setuid(2), for instance, without another exec. */
bool peer_is_same(const struct peer *p);

/* The present domain of process @pid.  0, or -ESRCH. */
int domain_of(pid_t pid, struct domain *ret);
bool domain_same(const struct domain *a, const struct domain *b);

/* The difference of @d from @from, for messages: "user 65534", "another pid namespace", "other capabilities". */
const char *domain_differs(const struct domain *d, const struct domain *from, char *buf, size_t size);

#endif
