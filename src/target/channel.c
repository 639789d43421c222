/*
 * The tracer's ends of the channels to agents.
 *
 * The socket that they connect to has a random name of the abstract namespace: no file is left behind, and the kernel
 * takes it away with the tracer.  Anybody on the machine can see the name, so who connects is asked of the kernel; what
 * an agent says is not believed further than its own process: messages have one size, text is made printable.
 */
#include <errno.h>
#include <poll.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/now.h"
#include "target/agent_priv.h"

enum { BACKLOG = 128, EVENTS = 16, ROUNDS = 16 };

/* No LOOK has this number. */
#define SEGMENT_SEQ UINT32_MAX

static int watch(struct agents *a, int fd, struct channel *c)
{
	struct epoll_event e = { .events = EPOLLIN, .data.ptr = c };

	return epoll_ctl(a->epoll, EPOLL_CTL_ADD, fd, &e) ? -errno : 0;
}

int channels_open(struct agents *a, struct strbuf *why)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	uint64_t random;
	size_t len;
	int err;

	if (getrandom(&random, sizeof(random), 0) != sizeof(random))
		return target_fail_errno(why, -errno, "cannot listen for agents");
	len = (size_t)snprintf(a->name, sizeof(a->name), "dtap-%d-%016llx", (int)getpid(), (unsigned long long)random);
	memcpy(addr.sun_path + 1, a->name, len);
	a->epoll = epoll_create1(EPOLL_CLOEXEC);
	a->listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (a->epoll < 0 || a->listener < 0 ||
	    bind(a->listener, (struct sockaddr *)&addr, (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + len)) ||
	    listen(a->listener, BACKLOG))
		return target_fail_errno(why, -errno, "cannot listen for agents");
	err = watch(a, a->listener, NULL);
	return err ? target_fail_errno(why, err, "cannot listen for agents") : 0;
}

static void free_channel(struct channel *c)
{
	close(c->fd);
	free(c->why);
	free(c);
}

void channels_close(struct agents *a)
{
	while (a->channels) {
		struct channel *next = a->channels->next;

		free_channel(a->channels);
		a->channels = next;
	}
	if (a->listener >= 0)
		close(a->listener);
	if (a->epoll >= 0)
		close(a->epoll);
}

int channels_add(struct agents *a, int fd, pid_t pid)
{
	struct channel *c = calloc(1, sizeof(*c));
	int err = c ? watch(a, fd, c) : -ENOMEM;

	if (err) {
		free(c);
		close(fd);
		return err;
	}
	c->fd = fd;
	c->pid = pid;
	c->next = a->channels;
	a->channels = c;
	return 0;
}

static struct channel *find(const struct agents *a, pid_t pid)
{
	struct channel *c;

	for (c = a->channels; c; c = c->next)
		if (c->pid == pid)
			return c;
	return NULL;
}

bool agents_have(const struct agents *a, pid_t pid)
{
	return find(a, pid) != NULL;
}

/* The agent of the same user, or root's; root traces everybody. */
static bool is_trusted(int fd, pid_t *pid)
{
	struct ucred peer;
	socklen_t len = sizeof(peer);

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len))
		return false;
	*pid = peer.pid;
	return geteuid() == 0 || peer.uid == 0 || peer.uid == geteuid();
}

/* Without room for more descriptors the listener waits until one is free again. */
static void take_new(struct agents *a)
{
	pid_t pid;
	int fd;

	while ((fd = accept4(a->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK)) >= 0 || errno == ECONNABORTED) {
		if (fd < 0)
			continue;
		if (is_trusted(fd, &pid))
			channels_add(a, fd, pid);
		else
			close(fd);
	}
	if (errno == EMFILE || errno == ENFILE)
		a->is_full = !epoll_ctl(a->epoll, EPOLL_CTL_DEL, a->listener, NULL);
}

static void tell(struct agents *a, const struct channel *c, enum agents_what what, uint32_t supplied)
{
	struct agents_event e = {
		.what = what, .pid = c->pid, .python = c->python, .can = c->can, .supplied = supplied,
		.why = c->why ? c->why : "",
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
	tell(a, c, AGENTS_GONE, 0);
	free_channel(c);
	if (a->is_full)
		a->is_full = watch(a, a->listener, NULL) != 0;
}

/* Keep the agent's words, one line of them. */
static void keep_why(struct channel *c, const char *why, size_t max)
{
	size_t len = strnlen(why, max), i;

	free(c->why);
	c->why = strndup(why, len);
	for (i = 0; c->why && i < len; i++)
		if ((unsigned char)c->why[i] < ' ' || c->why[i] == 127)
			c->why[i] = '?';
}

static void send_segment(const struct agents *a, struct channel *c)
{
	struct abi_agent_msg m = {
		.version = ABI_AGENT_VERSION, .kind = ABI_AGENT_SEGMENT, .seq = SEGMENT_SEQ, .pid = (uint32_t)c->pid,
		.phase = target_other_pids(c->pid) ? ABI_AGENT_OTHER_PIDS : ABI_AGENT_SAME_PIDS,
	};
	struct iovec iov = { &m, sizeof(m) };
	union {
		struct cmsghdr header;
		char space[CMSG_SPACE(sizeof(a->segment))];
	} control = { .space = { 0 } };
	struct msghdr hdr = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = &control,
			      .msg_controllen = sizeof(control) };
	struct cmsghdr *h = CMSG_FIRSTHDR(&hdr);

	h->cmsg_level = SOL_SOCKET;
	h->cmsg_type = SCM_RIGHTS;
	h->cmsg_len = CMSG_LEN(sizeof(a->segment));
	memcpy(CMSG_DATA(h), a->segment, sizeof(a->segment));
	c->has_segment = sendmsg(c->fd, &hdr, MSG_NOSIGNAL | MSG_DONTWAIT) == sizeof(m);
}

void agents_follow_forks(struct agents *a)
{
	a->follows_forks = true;
}

void agents_offer(struct agents *a, const int fds[3])
{
	memcpy(a->segment, fds, sizeof(a->segment));
	a->offers = true;
}

static void send_look(struct agents *a, struct channel *c)
{
	struct abi_agent_msg m = {
		.version = ABI_AGENT_VERSION, .kind = ABI_AGENT_LOOK, .seq = a->seq, .leave = c->leave,
	};

	if (a->follows_forks)
		memcpy(m.why, a->name, sizeof(a->name));
	if (a->offers && !c->has_segment)
		send_segment(a, c);
	c->is_asked = send(c->fd, &m, sizeof(m), MSG_NOSIGNAL | MSG_DONTWAIT) == sizeof(m);
}

static void take_hello(struct agents *a, struct channel *c, const struct abi_agent_msg *m)
{
	if (c->state != CHANNEL_NEW)
		return;
	c->python = m->python;
	c->can = m->can;
	c->state = m->phase == ABI_AGENT_READY ? CHANNEL_READY : CHANNEL_OFF;
	tell(a, c, c->state == CHANNEL_READY ? AGENTS_READY : AGENTS_OFF, 0);
	if (c->state == CHANNEL_READY)
		send_look(a, c);
}

/* One packet.  False: the channel has ended. */
static bool take_message(struct agents *a, struct channel *c)
{
	static const char other[] = "the agent in the process is another version's; the process has to be started anew";
	struct abi_agent_msg m;
	ssize_t n = recv(c->fd, &m, sizeof(m), MSG_DONTWAIT);

	if (n < 0)
		return errno == EAGAIN || errno == EINTR;
	if (n == 0)
		return false;
	if (n != sizeof(m) || m.version != ABI_AGENT_VERSION) {
		keep_why(c, other, sizeof(other));
		tell(a, c, AGENTS_LOST, 0);
		return false;
	}
	keep_why(c, m.why, sizeof(m.why));
	if (m.kind == ABI_AGENT_HELLO)
		take_hello(a, c, &m);
	if (m.kind == ABI_AGENT_STATE && c->state == CHANNEL_READY) {
		if (m.seq == a->seq)
			c->is_asked = false;
		tell(a, c, AGENTS_STATE, m.supplied);
	}
	return true;
}

/* Take what is there after waiting for it @timeout_ms at most; was there anything? */
static bool turn(struct agents *a, int timeout_ms)
{
	struct epoll_event e[EVENTS];
	int n = epoll_wait(a->epoll, e, EVENTS, timeout_ms), i;

	for (i = 0; i < n; i++) {
		struct channel *c = e[i].data.ptr;

		if (!c)
			take_new(a);
		else if (!take_message(a, c))
			end(a, c);
	}
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
		if (c->pid == pid)
			c->leave = leave;
}

/* Milliseconds until @end, not below 0. */
static int left(uint64_t end)
{
	uint64_t now = now_ms();

	return now < end ? (int)(end - now) : 0;
}

int agents_wait(struct agents *a, pid_t pid, int timeout_ms, struct strbuf *why)
{
	uint64_t until = now_ms() + (uint64_t)timeout_ms;
	const struct channel *c;
	int ms;

	do {
		ms = left(until);
		c = find(a, pid);
		if (!c)
			return target_fail(why, -ESRCH, "the agent in process %d has gone", (int)pid);
		if (c->state == CHANNEL_OFF)
			return target_fail(why, -ENOTSUP, "the agent cannot work in process %d: %s", (int)pid,
					   c->why ? c->why : "");
		if (c->state == CHANNEL_READY)
			return 0;
		turn(a, ms);
	} while (ms > 0);
	return target_fail(why, -ETIMEDOUT, "process %d does not let its agent begin: it holds its interpreter's lock, or is "
			   "stopped", (int)pid);
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
	int ms = timeout_ms;

	agents_turn(a);
	a->seq++;
	for (c = a->channels; c; c = c->next)
		if (c->state == CHANNEL_READY)
			send_look(a, c);
	while (any_asked(a)) {
		turn(a, ms);
		if (ms <= 0)
			return any_asked(a) ? -ETIMEDOUT : 0;
		ms = left(until);
	}
	return 0;
}
