/*
 * Declarations shared by the files about agents; no other folder includes this.
 */
#ifndef DTAP_TARGET_AGENT_PRIV_H
#define DTAP_TARGET_AGENT_PRIV_H

#include "abi/agent.h"
#include "base/guarded.h"
#include "target/agent.h"
#include "target/peer.h"
#include "target/permit.h"
#include "target/priv.h"

enum channel_state {
	CHANNEL_STRANGER,	/* connected, but has not sent the word; in agents.strangers */
	CHANNEL_NEW,
	CHANNEL_READY,
	CHANNEL_OFF,
	CHANNEL_ENDED,		/* closed; in agents.ended until nothing refers to it */
};

struct channel {
	struct channel *next;
	int fd;
	struct peer peer;		/* STRANGER: only pid is set */
	enum channel_state state;
	uint64_t proof;		/* the number sent with ASK; 0: none, the tracer created this channel itself */
	unsigned int nasked;	/* how many ASKs were sent */
	uint64_t until_ms;	/* STRANGER: when it is dropped */
	uid_t uid;		/* STRANGER: the user who connected */
	bool has_segment;	/* the segment was sent, or refused to it */
	bool is_asked;		/* has not answered the last LOOK */
	bool has_answered;	/* one message at least */
	bool has_looked;	/* has answered a LOOK */
	bool has_another;	/* and has told that its process has begun another interpreter */
	bool asks;		/* it came by asking at its start */
	int asker;		/* a connection of its program, which waits until the hooks are installed; 0: none */
	bool rests;		/* as agents_rest() */
	uint32_t python, can, leave;
	char *why;		/* or NULL */
	bool says_again;	/* it was the same before */
};

struct agents_file {
	char *path;		/* NULL: there is none */
	uint64_t dev, ino;
};

enum { ASKED_PROCESSES = 256, ASKED_USERS = 64, ASK_NAME = 32 };

struct agents {
	struct agents_file object;
	/*
	 * The same, for a process on musl that runs already: its dynamic loader cannot add the thread-local variables that
	 * the other one has in the static block to threads that exist.
	 */
	struct agents_file musl;
	agents_fn *fn;
	void *ctx;
	struct channel *channels, *strangers, *ended;
	unsigned int nstrangers;
	int epoll, listener, timer;	/* the timer is for strangers */
	int signals;		/* a signalfd, readable when a signal asks the tracer to end */
	bool is_full;		/* out of descriptors: no connections are accepted */
	bool told_full;		/* that was said */
	int asked;		/* answer.c: the listener; 0: none, and the next two are unset */
	struct guarded asked_folder;	/* with the listener's name in it */
	char asked_name[ASK_NAME];
	bool is_asked_full;	/* as is_full, for it */
	struct asked_often { uint32_t id, n; uint64_t since_ms; } by_process[ASKED_PROCESSES], by_user[ASKED_USERS];
	agents_wanted_fn *wanted;
	void *wanted_ctx;
	uint32_t seq;		/* of the last LOOK */
	agents_segment_fn *segment;	/* NULL: none is offered */
	void *segment_ctx;
	char address[ABI_AGENT_ADDRESS];	/* of the socket, with the word */
	const char *word;	/* in @address */
	bool follows_forks;
	char env[sizeof(ABI_AGENT_ENV) + ABI_AGENT_ADDRESS];
	const char *environ[2];
	struct target_preload preload;
	struct permits permits;
};

/* agent.c: the object to load into a process that runs; its path may be NULL. */
const struct agents_file *agents_file_for(const struct agents *a, bool is_musl);

/* listen.c: open and close the listening socket.  listen_close() may be called after a failed open. */
int listen_open(struct agents *a, struct strbuf *why);
void listen_close(struct agents *a);

/* Accept connections. */
void listen_take(struct agents *a);

/* The timer has expired: drop strangers whose time is over. */
void listen_expire(struct agents *a);

/* Receive a message of stranger @c, which becomes a channel or is dropped. */
void listen_hear(struct agents *a, struct channel *c);

/* Find out which process @c is, and send it ASK.  False: that failed or was done too often; drop @c. */
bool listen_ask(struct agents *a, struct channel *c);

/* answer.c: a Python that starts asks. */
void answer_take(struct agents *a);
void answer_given(struct channel *c);	/* its hooks are installed, or it ends: its program goes on */
void answer_close(struct agents *a);

/* Descriptors may be free again: accept connections again. */
void listen_again(struct agents *a);

/* channel.c: add @fd to the epoll set; @c is NULL for the listener, and &a->timer for the timer. */
int channel_watch(struct agents *a, int fd, void *c);

/* Receive one packet; *@sender: the sending process, 0: unknown.  Returns as recv(2); sizeof(*m) + 1: too long. */
ssize_t channel_receive(int fd, struct abi_agent_msg *m, pid_t *sender);

/* Report an event of @c to the session. */
void channel_tell(struct agents *a, const struct channel *c, enum agents_what what, uint32_t supplied);
void channel_refuse(struct agents *a, struct channel *c, const char *why);	/* only reports REFUSED */
void channel_not_sent(struct agents *a, struct channel *c);			/* reports, where it needs a report, errno */
void channel_tell_lost(struct agents *a, struct channel *c);

/* The channel of process @pid, or NULL. */
struct channel *channel_of(const struct agents *a, pid_t pid);

/* Close @c, which must be in no list, and free it later. */
void channel_end(struct agents *a, struct channel *c);

/* Add a channel to @t's process that the tracer has created; @a takes over @fd, and closes it on failure. */
int channels_add(struct agents *a, int fd, const struct target *t);

void channels_close(struct agents *a);

/* Does a signal ask the tracer to end? */
bool agents_interrupted(const struct agents *a);

#endif
