/*
 * What the files about agents share.  Nobody else includes this.
 */
#ifndef DTAP_TARGET_AGENT_PRIV_H
#define DTAP_TARGET_AGENT_PRIV_H

#include "abi/agent.h"
#include "target/agent.h"
#include "target/priv.h"

struct channel {
	struct channel *next;
	int fd;
	pid_t pid;		/* 0: outside of our pid namespace */
	enum { CHANNEL_NEW, CHANNEL_READY, CHANNEL_OFF } state;
	bool has_segment;	/* it was sent what is offered */
	bool is_asked;		/* the answer to the last LOOK is still to come */
	uint32_t python, can, leave;
	char *why;		/* or NULL */
};

struct agents {
	char *object;
	uint64_t dev, ino;	/* the object's */
	agents_fn *fn;
	void *ctx;
	struct channel *channels;
	int epoll, listener;
	bool is_full;		/* no room for more descriptors: nobody is accepted */
	uint32_t seq;		/* of the last LOOK */
	bool offers;
	int segment[3];		/* when it offers one */
	char name[ABI_AGENT_NAME];	/* of the socket, without the NUL in front */
	bool follows_forks;
	char env[sizeof(ABI_AGENT_ENV) + 48];
	const char *environ[2];
	struct target_preload preload;
};

/* channel.c: everything of @a that has to do with channels.  channels_close() may be called after a failed open. */
int channels_open(struct agents *a, struct strbuf *why);
void channels_close(struct agents *a);

/* Add a connected channel; @fd is @a's from then on, and closed when that fails. */
int channels_add(struct agents *a, int fd, pid_t pid);

#endif
