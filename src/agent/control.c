/* SPDX-License-Identifier: MIT */
/*
 * The channels to tracers.
 *
 * The descriptors live among the program's, which may close every number it finds and open files of its own
 * there.  So all of them are sockets, each is known by its cookie (base/cookie.h), and nothing is read, written or closed
 * by a number that has become somebody else's.
 */
#include "agent/control.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "abi/agent.h"
#include "agent/agent.h"
#include "agent/engine.h"
#include "base/cookie.h"

/* @fd is published last and taken away first: 0 means that the row is free, 1 that somebody fills it. */
struct channel {
	int fd;			/* atomic */
	bool greeted, looked;	/* HELLO is sent; a LOOK has come */
	uint32_t leave;		/* of the last LOOK */
	char name[ABI_AGENT_NAME];	/* likewise: of the socket where children of fork find the tracer; empty: they are not to */
	uint64_t cookie;
};

static struct channel channels[CONTROL_CHANNELS];
static struct channel waker[2];		/* the thread's end, the others' */

static unsigned left;			/* atomic */

static int fd_of(const struct channel *channel)
{
	int fd = __atomic_load_n(&channel->fd, __ATOMIC_SEQ_CST);

	return fd > 1 && cookie_of(fd) == channel->cookie ? fd : -1;
}

/* A duplicate with a number that the program will not meet by chance, or -errno. */
static int high_duplicate(int fd)
{
	static const int lowest[] = { 500, 100, 3 };

	for (unsigned i = 0; i < sizeof(lowest) / sizeof(*lowest); i++) {
		long high = syscall(SYS_fcntl, fd, F_DUPFD_CLOEXEC, lowest[i]);

		if (high >= 0)
			return (int)high;
	}
	return -errno;
}

static void drop(struct channel *channel)
{
	int fd = fd_of(channel);

	engine_channel_ended(channel->cookie);
	__atomic_store_n(&channel->fd, 0, __ATOMIC_SEQ_CST);
	if (fd >= 0)
		close(fd);
}

/* Who made the socket at the other end: this user or root? */
static bool trusted(int fd)
{
	struct { int pid; unsigned uid, gid; } peer = { 0, (unsigned)-1, 0 };	/* struct ucred */
	socklen_t size = sizeof(peer);

	return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 &&
	       (peer.uid == 0 || (long)peer.uid == syscall(SYS_geteuid));
}

static int add(int fd, const char *name)
{
	if (!trusted(fd))
		return -EPERM;
	for (unsigned i = 0; i < CONTROL_CHANNELS; i++) {
		int none = 0, high;

		if (!__atomic_compare_exchange_n(&channels[i].fd, &none, 1, false, __ATOMIC_SEQ_CST,
						 __ATOMIC_SEQ_CST))
			continue;
		high = high_duplicate(fd);
		if (high < 0) {
			__atomic_store_n(&channels[i].fd, 0, __ATOMIC_SEQ_CST);
			return high;
		}
		channels[i].greeted = channels[i].looked = false;
		memset(channels[i].name, 0, sizeof(channels[i].name));
		memcpy(channels[i].name, name, strnlen(name, sizeof(channels[i].name) - 1));
		channels[i].cookie = cookie_of(high);
		__atomic_store_n(&channels[i].fd, high, __ATOMIC_SEQ_CST);
		close(fd);
		return 0;
	}
	return -EUSERS;
}

int control_add(int fd)
{
	return add(fd, "");
}

/* A child that forks before the tracer has said anything hands the name on all the same. */
static int connect_to(const char *name)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	size_t length = strlen(name);
	int fd, err;

	if (!length || length >= sizeof(address.sun_path))
		return -ENOENT;
	memcpy(address.sun_path + 1, name, length);
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -errno;
	if (connect(fd, (struct sockaddr *)&address,
		    (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + length)) < 0)
		err = -errno;
	else
		err = add(fd, name);
	if (err)
		close(fd);
	return err;
}

int control_connect(void)
{
	const char *name = getenv(ABI_AGENT_ENV);

	return name ? connect_to(name) : -ENOENT;
}

unsigned control_left(void)
{
	return __atomic_load_n(&left, __ATOMIC_RELAXED);
}

/* A tracer that has not said anything yet does not count. */
static void sum_up_left(void)
{
	unsigned all = ~0u;
	bool looked = false;

	for (unsigned i = 0; i < CONTROL_CHANNELS; i++) {
		if (fd_of(&channels[i]) < 0 || !channels[i].looked)
			continue;
		looked = true;
		all &= channels[i].leave;
	}
	if (looked || !control_has_channel())
		__atomic_store_n(&left, looked ? all : 0, __ATOMIC_RELAXED);
}

bool control_has_channel(void)
{
	for (unsigned i = 0; i < CONTROL_CHANNELS; i++)
		if (__atomic_load_n(&channels[i].fd, __ATOMIC_SEQ_CST))
			return true;
	return false;
}

void control_forked(void)
{
	char names[CONTROL_CHANNELS][ABI_AGENT_NAME];
	const char *own = getenv(ABI_AGENT_ENV);

	for (unsigned i = 0; i < CONTROL_CHANNELS; i++) {
		bool known = fd_of(&channels[i]) < 0 || (own && !strcmp(own, channels[i].name));

		for (unsigned k = 0; !known && k < i; k++)
			known = !strcmp(names[k], channels[i].name);
		memcpy(names[i], channels[i].name, sizeof(names[i]));
		if (known)
			names[i][0] = 0;
		drop(&channels[i]);
	}
	drop(&waker[0]);
	drop(&waker[1]);
	control_connect();
	for (unsigned i = 0; i < CONTROL_CHANNELS; i++)
		connect_to(names[i]);
	sum_up_left();
}

static void copy_why(char *to)
{
	size_t length = strlen(agent.why);

	if (length >= ABI_AGENT_WHY)
		length = ABI_AGENT_WHY - 1;
	memcpy(to, agent.why, length);
	to[length] = 0;
}

static void send_message(int fd, enum abi_agent_kind kind, uint32_t seq)
{
	struct abi_agent_msg msg;

	if (fd < 0)
		return;
	memset(&msg, 0, sizeof(msg));
	msg.version = ABI_AGENT_VERSION;
	msg.kind = (uint16_t)kind;
	msg.seq = seq;
	msg.pid = (uint32_t)syscall(SYS_getpid);
	msg.phase = agent.phase == AGENT_READY ? ABI_AGENT_READY : ABI_AGENT_OFF;
	if (kind == ABI_AGENT_HELLO) {
		msg.python = agent.py.version_hex;
		msg.can = agent.phase == AGENT_READY ? agent.can : 0;
	} else {
		msg.supplied = agent.supplied;
	}
	copy_why(msg.why);
	send(fd, &msg, sizeof(msg), MSG_NOSIGNAL | MSG_DONTWAIT);
}

void control_greet(void)
{
	for (unsigned i = 0; i < CONTROL_CHANNELS; i++) {
		if (fd_of(&channels[i]) < 0 || channels[i].greeted)
			continue;
		channels[i].greeted = true;
		send_message(fd_of(&channels[i]), ABI_AGENT_HELLO, 0);
		if (agent.phase == AGENT_OFF)
			drop(&channels[i]);
	}
}

void control_refuse(int fd)
{
	send_message(fd, ABI_AGENT_HELLO, 0);
}

int control_make_waker(void)
{
	int pair[2];

	if (fd_of(&waker[0]) >= 0 && fd_of(&waker[1]) >= 0)
		return 0;
	drop(&waker[0]);
	drop(&waker[1]);
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return -errno;
	for (int i = 0; i < 2; i++) {
		int high = high_duplicate(pair[i]);

		if (high >= 0) {
			close(pair[i]);
			pair[i] = high;
		}
		waker[i].cookie = cookie_of(pair[i]);
		__atomic_store_n(&waker[i].fd, pair[i], __ATOMIC_SEQ_CST);
	}
	return 0;
}

void control_wake(void)
{
	int fd = fd_of(&waker[1]);

	if (fd >= 0)
		send(fd, "", 1, MSG_NOSIGNAL | MSG_DONTWAIT);
}

int control_waits(struct pollfd *polled)
{
	polled[0] = (struct pollfd){ .fd = fd_of(&waker[0]), .events = POLLIN };
	for (int i = 0; i < CONTROL_CHANNELS; i++) {
		int fd = __atomic_load_n(&channels[i].fd, __ATOMIC_SEQ_CST);

		/* One that the program has closed is as good as gone. */
		if (fd > 1 && fd_of(&channels[i]) < 0)
			drop(&channels[i]);
		polled[1 + i] = (struct pollfd){ .fd = fd_of(&channels[i]), .events = POLLIN };
	}
	return CONTROL_POLLED;
}

enum { SEGMENT_FDS = 3 };

static void close_all(const int fds[SEGMENT_FDS])
{
	for (int i = 0; i < SEGMENT_FDS; i++)
		if (fds[i] >= 0)
			close(fds[i]);
}

/* A message and the descriptors that came with it; -1 where there were fewer. */
static ssize_t receive(int fd, struct abi_agent_msg *msg, int fds[SEGMENT_FDS])
{
	union {
		struct cmsghdr header;
		char space[CMSG_SPACE(SEGMENT_FDS * sizeof(int))];
	} control;
	struct iovec iov = { msg, sizeof(*msg) };
	struct msghdr hdr = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = &control,
			      .msg_controllen = sizeof(control) };
	ssize_t got = recvmsg(fd, &hdr, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	struct cmsghdr *c = got >= 0 ? CMSG_FIRSTHDR(&hdr) : NULL;

	for (int i = 0; i < SEGMENT_FDS; i++)
		fds[i] = -1;
	if (c && c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS) {
		size_t bytes = c->cmsg_len - CMSG_LEN(0);

		memcpy(fds, CMSG_DATA(c), bytes < SEGMENT_FDS * sizeof(int) ? bytes : SEGMENT_FDS * sizeof(int));
	}
	return got;
}

static void take_segment(struct channel *channel, int fds[SEGMENT_FDS], const struct abi_agent_msg *msg)
{
	const struct engine_who who = { msg->pid, msg->phase == ABI_AGENT_OTHER_PIDS };
	const char *why = "a segment without its files";
	bool whole = fds[0] >= 0 && fds[1] >= 0 && fds[2] >= 0;
	int wake = whole ? high_duplicate(fds[2]) : -1;
	int files[SEGMENT_FDS] = { fds[0], fds[1], wake };

	agent_why("");
	if (wake < 0 || engine_receive(channel->cookie, files, &who, &why)) {
		agent_why(why);
		if (wake >= 0)
			close(wake);
	}
	close_all(fds);
	send_message(fd_of(channel), ABI_AGENT_STATE, msg->seq);
}

/* One message; false: the channel has ended. */
static bool serve_one(struct channel *channel, int fd, void (*look)(void))
{
	struct abi_agent_msg msg;
	int fds[SEGMENT_FDS];
	ssize_t got = receive(fd, &msg, fds);

	if (got < 0)
		return errno == EAGAIN || errno == EINTR;
	if (got != sizeof(msg) || msg.version != ABI_AGENT_VERSION) {
		close_all(fds);
		return false;
	}
	if (msg.kind == ABI_AGENT_SEGMENT) {
		take_segment(channel, fds, &msg);
		return true;
	}
	close_all(fds);
	if (msg.kind == ABI_AGENT_LOOK) {
		channel->leave = msg.leave;
		memcpy(channel->name, msg.why, sizeof(channel->name) - 1);
		channel->looked = true;
		sum_up_left();
		look();
		send_message(fd_of(channel), ABI_AGENT_STATE, msg.seq);
	}
	return true;
}

bool control_serve(const struct pollfd *polled, int n, void (*look)(void))
{
	bool ended = false;
	char byte[8];

	if (polled[0].revents && fd_of(&waker[0]) >= 0)
		recv(polled[0].fd, byte, sizeof(byte), MSG_DONTWAIT);
	for (int i = 1; i < n; i++) {
		struct channel *channel = &channels[i - 1];

		if (!polled[i].revents || fd_of(channel) != polled[i].fd)
			continue;
		if (serve_one(channel, polled[i].fd, look))
			continue;
		drop(channel);
		sum_up_left();
		ended = true;
	}
	return ended;
}

static bool all_looked(void)
{
	for (unsigned i = 0; i < CONTROL_CHANNELS; i++)
		if (fd_of(&channels[i]) >= 0 && !channels[i].looked)
			return false;
	return true;
}

static long long now_ms(void)
{
	struct timespec now = { 0 };

	syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000LL + now.tv_nsec / 1000000;
}

void control_first_look(void (*look)(void))
{
	long long end = now_ms() + ABI_AGENT_WAIT_MS, now;
	struct pollfd polled[CONTROL_POLLED];

	while (!all_looked() && (now = now_ms()) < end) {
		int n = control_waits(polled);

		poll(polled, (unsigned)n, (int)(end - now));
		control_serve(polled, n, look);
	}
}
