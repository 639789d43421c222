/*
 * The tracer's ends of the channels to agents: each belongs to a peer (peer.h).
 *
 * A channel comes from listen.c, or was created when the tracer loaded the agent (inject.c).  What an agent sends is
 * trusted only as far as it concerns its own process: messages have one size, and text is made printable.
 */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "abi/calls.h"
#include "base/now.h"
#include "target/agent_priv.h"

enum { EVENTS = 16, ROUNDS = 16 };

/* The sequence number of SEGMENT messages; no LOOK has it. */
#define SEGMENT_SEQ UINT32_MAX

int channel_watch(struct agents *a, int fd, void *c)
{
	struct epoll_event e = { .events = EPOLLIN, .data.ptr = c };

	return epoll_ctl(a->epoll, EPOLL_CTL_ADD, fd, &e) ? -errno : 0;
}

/*
 * Closing the descriptor does not end its events while a child that another thread has just forked has it, too: they would
 * come for a channel that is freed.
 */
void channel_end(struct agents *a, struct channel *c)
{
	if (c->fd >= 0) {
		epoll_ctl(a->epoll, EPOLL_CTL_DEL, c->fd, NULL);
		close(c->fd);
	}
	c->fd = -1;
	answer_given(c);
	peer_fini(&c->peer);
	c->state = CHANNEL_ENDED;
	c->next = a->ended;
	a->ended = c;
}

static void free_ended(struct agents *a)
{
	while (a->ended) {
		struct channel *c = a->ended;

		a->ended = c->next;
		free(c->why);
		free(c);
	}
}

void channels_close(struct agents *a)
{
	while (a->channels) {
		struct channel *c = a->channels;

		a->channels = c->next;
		channel_end(a, c);
	}
	listen_close(a);
	answer_close(a);
	free_ended(a);
	if (a->epoll >= 0)
		close(a->epoll);
	agents_keep_signals(a);
}

int channels_add(struct agents *a, int fd, const struct target *t)
{
	struct channel *c = calloc(1, sizeof(*c));
	int err = c ? peer_prove(t->pid, t->pidfd, &c->peer, NULL) : -ENOMEM, on = 1;

	if (!err)
		err = setsockopt(fd, SOL_SOCKET, SO_PASSCRED, &on, sizeof(on)) ? -errno : channel_watch(a, fd, c);
	if (err) {
		if (c)
			peer_fini(&c->peer);
		free(c);
		close(fd);
		return err;
	}
	c->fd = fd;
	c->state = CHANNEL_NEW;
	c->next = a->channels;
	a->channels = c;
	return 0;
}

struct channel *channel_of(const struct agents *a, pid_t pid)
{
	struct channel *c;

	for (c = a->channels; c; c = c->next)
		if (c->peer.pid == pid)
			return c;
	return NULL;
}

bool agents_have(const struct agents *a, pid_t pid)
{
	return channel_of(a, pid) != NULL;
}

void channel_tell(struct agents *a, const struct channel *c, enum agents_what what, uint32_t supplied)
{
	struct agents_event e = {
		.what = what, .pid = c->peer.pid, .python = c->python, .can = c->can, .supplied = supplied,
		.why = c->why ? c->why : "", .again = c->says_again, .is_off = c->state == CHANNEL_OFF,
	};

	if (a->fn)
		a->fn(a->ctx, &e);
}

static void end(struct agents *a, struct channel *c)
{
	struct channel **at = &a->channels;

	while (*at != c)
		at = &(*at)->next;
	*at = c->next;
	/* A child of fork begins with its parent's hooks: it may end before it is asked. */
	if (c->state == CHANNEL_READY && ((!c->has_answered && !c->proof) || (c->asks && !c->has_looked)))
		channel_tell(a, c, AGENTS_LATE, 0);
	channel_tell(a, c, AGENTS_GONE, 0);
	channel_end(a, c);
	listen_again(a);
}

/* Keep the text @why of the agent, as one printable line. */
static void keep_why(struct channel *c, const char *why, size_t max)
{
	size_t len = strnlen(why, max), i;
	char *last = c->why;

	c->why = strndup(why, len);
	for (i = 0; c->why && i < len; i++)
		if ((unsigned char)c->why[i] < ' ' || c->why[i] == 127)
			c->why[i] = '?';
	c->says_again = last && c->why && !strcmp(last, c->why);
	free(last);
}

void channel_tell_lost(struct agents *a, struct channel *c)
{
	static const char other[] = "the agent in the process is another version's; the process has to be started anew";

	keep_why(c, other, sizeof(other));
	channel_tell(a, c, AGENTS_LOST, 0);
}

void agents_follow_forks(struct agents *a)
{
	a->follows_forks = true;
}

void agents_offer(struct agents *a, agents_segment_fn *fn, void *ctx)
{
	a->segment = fn;
	a->segment_ctx = ctx;
}

static bool send_fds(struct agents *a, const struct channel *c, const int fds[3])
{
	struct abi_agent_msg m = {
		.version = ABI_AGENT_VERSION, .kind = ABI_AGENT_SEGMENT, .seq = SEGMENT_SEQ, .pid = (uint32_t)c->peer.pid,
		.phase = target_other_pids(c->peer.pid) ? ABI_AGENT_OTHER_PIDS : ABI_AGENT_SAME_PIDS,
		.leave = permit_memory(&a->permits, c->peer.pid) ? 0 : ABI_CALLS_MEMORY,
	};
	struct iovec iov = { &m, sizeof(m) };
	union {
		struct cmsghdr header;
		char space[CMSG_SPACE(3 * sizeof(*fds))];
	} control = { .space = { 0 } };
	struct msghdr hdr = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = &control,
			      .msg_controllen = sizeof(control) };
	struct cmsghdr *h = CMSG_FIRSTHDR(&hdr);

	h->cmsg_level = SOL_SOCKET;
	h->cmsg_type = SCM_RIGHTS;
	h->cmsg_len = CMSG_LEN(3 * sizeof(*fds));
	memcpy(CMSG_DATA(h), fds, 3 * sizeof(*fds));
	return sendmsg(c->fd, &hdr, MSG_NOSIGNAL | MSG_DONTWAIT) == sizeof(m);
}

void channel_refuse(struct agents *a, struct channel *c, const char *why)
{
	keep_why(c, why, strlen(why));
	channel_tell(a, c, AGENTS_REFUSED, 0);
	keep_why(c, "", 0);
}

/*
 * Sending to @c has failed with errno.  Some errors need no report: if the agent has ended, the closed channel will be
 * reported, and if its queue is full, its missing answer will be noticed.
 */
void channel_not_sent(struct agents *a, struct channel *c)
{
	int e = errno;

	if (e != EPIPE && e != ECONNRESET && e != EAGAIN)
		channel_refuse(a, c, strerror(e));
}

/* Send @c the segment of the peer's domain, or nothing if the peer has left the domain that was verified. */
static void send_segment(struct agents *a, struct channel *c)
{
	struct strbuf why = { 0 };
	int fds[3], n;

	if (peer_is_same(&c->peer))
		n = a->segment(a->segment_ctx, &c->peer.domain, fds, &why);
	else if (!peer_is_ending(&c->peer))
		n = target_fail(&why, -EPERM, "its rights cannot be read, or have changed since it was looked at");
	else
		n = 0;		/* the channel's end will be reported soon */
	c->has_segment = n <= 0 || send_fds(a, c, fds);
	if (!c->has_segment)
		channel_not_sent(a, c);
	if (n < 0) {
		channel_refuse(a, c, strbuf_str(&why));
	}
	strbuf_fini(&why);
}

static void send_look(struct agents *a, struct channel *c)
{
	struct abi_agent_msg m = {
		.version = ABI_AGENT_VERSION, .kind = ABI_AGENT_LOOK, .seq = a->seq, .leave = c->leave,
		.phase = c->rests ? ABI_AGENT_REST : ABI_AGENT_RUN,
	};

	if (a->follows_forks)
		memcpy(m.why, a->address, sizeof(a->address));
	if (a->segment && !c->has_segment)
		send_segment(a, c);
	c->is_asked = send(c->fd, &m, sizeof(m), MSG_NOSIGNAL | MSG_DONTWAIT) == sizeof(m);
	if (!c->is_asked)
		channel_not_sent(a, c);
}

/* Is @c's HELLO a valid answer to our ASK?  False: not from the verified process, close.  *@again: send ASK again. */
static bool is_proved(struct channel *c, const struct abi_agent_msg *m, pid_t sender, bool *again)
{
	*again = false;
	if (!c->proof)
		return true;
	if (sender != c->peer.pid || !peer_lives(&c->peer))
		return false;
	*again = m->proof != c->proof || !peer_is_same(&c->peer);
	return true;
}

/* False: close the channel. */
static bool take_hello(struct agents *a, struct channel *c, const struct abi_agent_msg *m, pid_t sender)
{
	bool again;

	if (c->state != CHANNEL_NEW)
		return true;
	/* An agent that cannot work is sent nothing, and may not have waited for ASK. */
	if (m->phase == ABI_AGENT_READY) {
		if (!is_proved(c, m, sender, &again))
			return false;
		if (again)
			return listen_ask(a, c);
	}
	keep_why(c, m->why, sizeof(m->why));
	c->python = m->python;
	c->can = m->can;
	c->state = m->phase == ABI_AGENT_READY ? CHANNEL_READY : CHANNEL_OFF;
	channel_tell(a, c, c->state == CHANNEL_READY ? AGENTS_READY : AGENTS_OFF, 0);
	if (c->state == CHANNEL_READY)
		send_look(a, c);
	return true;
}

ssize_t channel_receive(int fd, struct abi_agent_msg *m, pid_t *sender)
{
	/* Room for the credentials, which come first, and no more: the kernel then closes descriptors sent along. */
	union {
		struct cmsghdr header;
		char space[CMSG_SPACE(sizeof(struct ucred))];
	} control = { .space = { 0 } };
	struct iovec iov = { m, sizeof(*m) };
	struct msghdr hdr = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = &control,
			      .msg_controllen = sizeof(control) };
	ssize_t n = recvmsg(fd, &hdr, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	struct cmsghdr *h = n >= 0 ? CMSG_FIRSTHDR(&hdr) : NULL;
	struct ucred who;

	*sender = 0;
	if (h && h->cmsg_level == SOL_SOCKET && h->cmsg_type == SCM_CREDENTIALS && h->cmsg_len >= CMSG_LEN(sizeof(who))) {
		memcpy(&who, CMSG_DATA(h), sizeof(who));
		*sender = who.pid;
	}
	return n >= 0 && hdr.msg_flags & MSG_TRUNC ? (ssize_t)sizeof(*m) + 1 : n;
}

/* Handle one packet.  False: close the channel. */
static bool take_message(struct agents *a, struct channel *c)
{
	struct abi_agent_msg m;
	pid_t sender;
	ssize_t n = channel_receive(c->fd, &m, &sender);

	/* ECONNRESET: the agent has closed its end without having read everything; what it had sent is still to be received. */
	if (n < 0 && (errno == EAGAIN || errno == EINTR || errno == ECONNRESET))
		return true;
	if (n < 0)
		channel_refuse(a, c, strerror(errno));
	if (n <= 0)
		return false;
	if (n != sizeof(m) || m.version != ABI_AGENT_VERSION) {
		channel_tell_lost(a, c);
		return false;
	}
	if (m.kind == ABI_AGENT_HELLO)
		return take_hello(a, c, &m, sender);
	if (m.kind == ABI_AGENT_STATE && m.phase == ABI_AGENT_ANOTHER) {
		if (c->has_looked && !c->has_another)
			channel_tell(a, c, AGENTS_ANOTHER, 0);
		c->has_another |= c->has_looked;
	} else if (m.kind == ABI_AGENT_STATE && c->state == CHANNEL_READY) {
		keep_why(c, m.why, sizeof(m.why));
		if (m.seq == a->seq)
			c->is_asked = false;
		if (m.phase == ABI_AGENT_LATE)
			channel_tell(a, c, AGENTS_LATE, m.supplied);
		/* The answer to SEGMENT comes before its hooks: LOOK's tells of those. */
		if (m.seq != SEGMENT_SEQ || (c->why && *c->why))
			channel_tell(a, c, AGENTS_STATE, m.supplied);
		c->has_answered = true;
		if (m.seq != SEGMENT_SEQ) {
			c->has_looked = true;
			answer_given(c);
		}
	}
	return true;
}

/* Wait for events, @timeout_ms at most, and handle them.  False: there were none. */
static bool turn(struct agents *a, int timeout_ms)
{
	struct epoll_event e[EVENTS];
	int n = epoll_wait(a->epoll, e, EVENTS, timeout_ms), i;

	for (i = 0; i < n; i++) {
		struct channel *c = e[i].data.ptr;

		if (!c)
			listen_take(a);
		else if ((void *)c == &a->asked)
			answer_take(a);
		else if ((void *)c == &a->timer)
			listen_expire(a);
		else if (c->state == CHANNEL_STRANGER)
			listen_hear(a, c);
		else if (c->state != CHANNEL_ENDED && !take_message(a, c))
			end(a, c);
	}
	free_ended(a);
	return n > 0;
}

int agents_fd(const struct agents *a)
{
	return a->epoll;
}

void agents_turn(struct agents *a)
{
	int i;

	for (i = 0; i < ROUNDS && turn(a, 0); i++)
		;
}

void agents_leave(struct agents *a, pid_t pid, uint32_t leave)
{
	struct channel *c;

	for (c = a->channels; c; c = c->next)
		if (c->peer.pid == pid)
			c->leave = leave;
}

bool agents_rest(struct agents *a, pid_t pid, bool rest)
{
	bool found = false;

	for (struct channel *c = a->channels; c; c = c->next) {
		if (c->peer.pid != pid || c->state != CHANNEL_READY)
			continue;
		c->rests = rest;
		send_look(a, c);
		found = true;
	}
	return found;
}

/* Milliseconds until @end, at least 0. */
static int left(uint64_t end)
{
	uint64_t now = now_ms();

	return now < end ? (int)(end - now) : 0;
}

/*
 * Wait for events, @ms milliseconds at most, and handle them.  -EINTR: a signal asks the tracer to end.  A wait that ends for
 * another reason, by a debugger for example, is one without events.
 */
static int wait_turn(struct agents *a, int ms)
{
	struct pollfd p[] = { { .fd = a->epoll, .events = POLLIN }, { .fd = a->signals, .events = POLLIN } };
	int n = poll(p, 2, ms);

	if (n > 0 && p[1].revents)
		return -EINTR;
	turn(a, 0);
	return 0;
}

void agents_keep_signals(struct agents *a)
{
	if (a->signals >= 0)
		close(a->signals);
	a->signals = -1;	/* poll() ignores it */
}

bool agents_interrupted(const struct agents *a)
{
	struct pollfd p = { .fd = a->signals, .events = POLLIN };

	return poll(&p, 1, 0) > 0;
}

enum agents_said agents_said(const struct agents *a, pid_t pid, struct strbuf *why)
{
	const struct channel *c = channel_of(a, pid);

	if (!c) {
		target_fail(why, -ESRCH, "the agent in process %d has gone", (int)pid);
		return AGENTS_SAID_END;
	}
	if (c->state == CHANNEL_OFF) {
		target_fail(why, -ENOTSUP, "the agent cannot work in process %d: %s", (int)pid, c->why ? c->why : "");
		return AGENTS_SAID_OFF;
	}
	if (c->state == CHANNEL_READY)
		return AGENTS_SAID_READY;
	target_fail(why, -ETIMEDOUT, "process %d does not let its agent begin: it holds its interpreter's lock, or is stopped",
		    (int)pid);
	return AGENTS_SAID_NOTHING;
}

int agents_wait(struct agents *a, const pid_t *pids, size_t n, int timeout_ms)
{
	uint64_t until = now_ms() + (uint64_t)timeout_ms;
	size_t first = 0;
	int ms, err;

	do {
		ms = left(until);
		while (first < n && agents_said(a, pids[first], NULL) != AGENTS_SAID_NOTHING)
			first++;
		if (first == n)
			return 0;
		err = wait_turn(a, ms);
	} while (!err && ms > 0);
	return err ? err : -ETIMEDOUT;
}

static bool any_asked(const struct agents *a)
{
	const struct channel *c;

	for (c = a->channels; c; c = c->next)
		if (c->is_asked)
			return true;
	return false;
}

int agents_look(struct agents *a, int timeout_ms)
{
	uint64_t until = now_ms() + (uint64_t)timeout_ms;
	struct channel *c;
	int ms, err = 0;

	agents_turn(a);
	a->seq++;
	for (c = a->channels; c; c = c->next)
		if (c->state == CHANNEL_READY)
			send_look(a, c);
	do {
		ms = left(until);
		if (!any_asked(a))
			return 0;
		err = wait_turn(a, ms);
	} while (!err && ms > 0);
	return err ? err : any_asked(a) ? -ETIMEDOUT : 0;
}

static bool is_first_due(const struct channel *c)
{
	return c->state == CHANNEL_READY && c->is_asked && !c->has_looked;
}

static bool any_first_due(const struct agents *a)
{
	const struct channel *c = a->channels;

	while (c && !is_first_due(c))
		c = c->next;
	return c;
}

void agents_end(struct agents *a, int timeout_ms, void (*fn)(void *ctx, pid_t pid), void *ctx)
{
	uint64_t until = now_ms() + (uint64_t)timeout_ms;
	const struct channel *c;

	agents_turn(a);
	while (any_first_due(a) && left(until) && !wait_turn(a, left(until)))
		;
	for (c = a->channels; c; c = c->next)
		if (is_first_due(c))
			fn(ctx, c->peer.pid);
}

void agents_each(const struct agents *a, void (*fn)(void *ctx, pid_t pid), void *ctx)
{
	const struct channel *c;

	for (c = a->channels; c; c = c->next)
		fn(ctx, c->peer.pid);
}

void agents_each_asked(const struct agents *a, void (*fn)(void *ctx, pid_t pid), void *ctx)
{
	const struct channel *c;

	for (c = a->channels; c; c = c->next)
		if (c->is_asked)
			fn(ctx, c->peer.pid);
}
