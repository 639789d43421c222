/* SPDX-License-Identifier: MIT */
/*
 * The channels to tracers.
 *
 * The descriptors are in the program's table, and the program may close any of them and reuse its number.  So all of
 * them are sockets, identified by their cookies (base/cookie.h), and a descriptor is not read, written or closed if its
 * number belongs to another file now.
 */
#include "agent/control.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "abi/agent.h"
#include "abi/calls.h"
#include "agent/agent.h"
#include "agent/engine.h"
#include "agent/environ.h"
#include "agent/watch.h"
#include "base/cookie.h"

static struct channel *const channels = agent.control.channels;
static struct waker *const wakers = agent.control.wakers;

static int fd_of(const struct channel *channel)
{
	int fd = __atomic_load_n(&channel->fd, __ATOMIC_SEQ_CST);

	return fd > 1 && cookie_of(fd) == channel->cookie ? fd : -1;
}

/* How many numbers the table of descriptors has room for: proc_pid_status(5), FDSize.  0: it is not known. */
static int table_size(void)
{
	static const char field[] = "\nFDSize:\t";
	const size_t length = sizeof(field) - 1;
	int fd = (int)syscall(SYS_openat, AT_FDCWD, "/proc/self/status", O_RDONLY | O_CLOEXEC), size = 0;
	char text[1024];
	ssize_t n = fd < 0 ? -1 : syscall(SYS_read, fd, text, sizeof(text));

	if (fd >= 0)
		close(fd);
	for (ssize_t at = 0; at + (ssize_t)length < n; at++) {
		if (memcmp(text + at, field, length))
			continue;
		for (at += (ssize_t)length; at < n && text[at] >= '0' && text[at] <= '9' && size < 1 << 20; at++)
			size = 10 * size + text[at] - '0';
		break;
	}
	return size;
}

/*
 * A duplicate with a number that the program is unlikely to use, or -errno.  Nor does the agent use it again soon: a poll(2) that a
 * tracer's stop interrupts looks its numbers up anew, and would wait for another file at the number that the program has closed.
 *
 * The table of descriptors does not grow for it: where threads share that, the kernel waits for each processor to have left what it
 * does with the old one, which takes some 20 ms, and seconds where BPF programs run long (expand_fdtable() in fs/file.c).
 */
static int high_duplicate(int fd)
{
	enum { HIGH = 500, NUMBERS = 256, SPARE = 8 };
	int next = (int)(__atomic_fetch_add(&agent.control.duplicates, 1, __ATOMIC_RELAXED) % NUMBERS);
	int size = table_size(), half = size / 2, lowest[] = { HIGH + next, 100, 3 };

	if (half > SPARE && size < HIGH + NUMBERS)
		lowest[0] = half + next % (half - SPARE);
	for (unsigned i = 0; i < sizeof(lowest) / sizeof(*lowest); i++) {
		long high = syscall(SYS_fcntl, fd, F_DUPFD_CLOEXEC, lowest[i]);

		if (high >= 0)
			return (int)high;
	}
	return -errno;
}

/*
 * The thread that clears the number closes the descriptor.  Then the row may be reused, so its cookie is read before.
 */
static void close_end(struct channel *end)
{
	uint64_t cookie = __atomic_load_n(&end->cookie, __ATOMIC_SEQ_CST);
	int fd = __atomic_load_n(&end->fd, __ATOMIC_SEQ_CST);

	if (fd > 1 && __atomic_compare_exchange_n(&end->fd, &fd, 0, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST) &&
	    cookie_of(fd) == cookie)
		close(fd);
}

static void drop(struct channel *channel)
{
	engine_channel_ended(channel->cookie);
	close_end(channel);
}

static void free_waker(struct waker *w)
{
	close_end(&w->thread);
	close_end(&w->others);
	__atomic_store_n(&w->taken, 0, __ATOMIC_SEQ_CST);
}

/* Was the socket at the other end created by this user or root? */
static bool trusted(int fd)
{
	struct { int pid; unsigned uid, gid; } peer = { 0, (unsigned)-1, 0 };	/* struct ucred */
	socklen_t size = sizeof(peer);

	return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 &&
	       (peer.uid == 0 || (long)peer.uid == syscall(SYS_geteuid));
}

static int add(int fd, const char *address, bool connected, bool awaited, unsigned *row)
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
		channels[i].greeted = channels[i].looked = channels[i].rests = false;
		channels[i].connected = connected;
		channels[i].start = awaited ? CHANNEL_AWAITED : CHANNEL_FREE;
		channels[i].proof = 0;
		memset(channels[i].address, 0, sizeof(channels[i].address));
		memcpy(channels[i].address, address, strnlen(address, sizeof(channels[i].address) - 1));
		channels[i].cookie = cookie_of(high);
		__atomic_store_n(&channels[i].fd, high, __ATOMIC_SEQ_CST);
		close(fd);
		*row = i;
		return 0;
	}
	return -EUSERS;
}

int control_add(int fd, bool connected, unsigned *row)
{
	return add(fd, "", connected, connected, row);
}

/* Is the next thing the tracer's, ASK or LOOK, not the agent's? */
static bool is_tracers_turn(const struct channel *channel)
{
	return !channel->looked && (!channel->proof || channel->greeted);
}

void control_await(unsigned row, long long ms)
{
	enum { OWN_MS = 3000 };
	const struct timespec nap = { .tv_nsec = 100000 };
	struct channel *channel = &channels[row];
	uint64_t cookie = channel->cookie;
	__typeof__(channel->start) awaited = CHANNEL_AWAITED;
	long long own_ms = OWN_MS, last = agent_now_ms(), now;
	void *thread = agent.py.PyEval_SaveThread();

	while (__atomic_load_n(&channel->start, __ATOMIC_ACQUIRE) == CHANNEL_AWAITED && fd_of(channel) >= 0 &&
	       channel->cookie == cookie && ms > 0 && own_ms > 0) {
		nanosleep(&nap, NULL);
		if (watch_asks()) {
			agent.py.PyEval_RestoreThread(thread);
			watch_answer();
			thread = agent.py.PyEval_SaveThread();
		}
		now = agent_now_ms();
		*(is_tracers_turn(channel) ? &ms : &own_ms) -= now - last;
		last = now;
	}
	__atomic_compare_exchange_n(&channel->start, &awaited, CHANNEL_LATE, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
	agent.py.PyEval_RestoreThread(thread);
}

void control_take_back(unsigned row)
{
	drop(&channels[row]);
}

/*
 * Is the socket that @fd is connected to owned by the tracer with the PID in @address, "dtap-PID-NAME:WORD"?  Anybody
 * can bind the name once the tracer has ended.  The peer's pid is 0 if it is not in our pid namespace.
 */
static bool is_owner(int fd, const char *address)
{
	struct { int pid; unsigned uid, gid; } peer = { -1, (unsigned)-1, 0 };	/* struct ucred */
	static const char prefix[] = "dtap-";
	socklen_t size = sizeof(peer);
	const char *at = address + sizeof(prefix) - 1;
	int pid = 0;

	if (strncmp(address, prefix, sizeof(prefix) - 1) || getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size))
		return false;
	while (*at >= '0' && *at <= '9' && pid < 100000000)
		pid = 10 * pid + (*at++ - '0');
	return *at == '-' && (peer.pid == pid || peer.pid == 0);
}

/* Retries while the tracer's queue of connections is full, which others may fill all the time. */
static int connect_socket(int fd, const struct sockaddr_un *address, socklen_t length)
{
	enum { TRIES = 20 };
	int tries = 0;

	while (connect(fd, (const struct sockaddr *)address, length) < 0) {
		if (errno != EAGAIN || tries++ == TRIES)
			return -errno;
		poll(NULL, 0, 1);
	}
	return 0;
}

/* Send the word, without which the tracer closes the connection. */
static int prove(int fd, const char *word)
{
	struct abi_agent_msg msg;

	memset(&msg, 0, sizeof(msg));
	msg.version = ABI_AGENT_VERSION;
	msg.kind = ABI_AGENT_PROOF;
	msg.pid = (uint32_t)syscall(SYS_getpid);
	memcpy(msg.why, word, ABI_AGENT_WORD);
	return send(fd, &msg, sizeof(msg), MSG_NOSIGNAL | MSG_DONTWAIT) == (ssize_t)sizeof(msg) ? 0 : -errno;
}

/* The address is stored with the channel, for children that fork before the tracer's first message. */
static int connect_to(const char *address)
{
	struct sockaddr_un name = { .sun_family = AF_UNIX };
	const char *colon = strchr(address, ':');
	size_t length = colon ? (size_t)(colon - address) : 0;
	unsigned row;
	int fd, err;

	if (!length || length >= sizeof(name.sun_path) || strlen(colon + 1) != ABI_AGENT_WORD)
		return -ENOENT;
	memcpy(name.sun_path + 1, address, length);
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -errno;
	err = connect_socket(fd, &name, (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + length));
	if (!err && (!is_owner(fd, address) || !trusted(fd)))
		err = -EPERM;
	if (!err)
		err = prove(fd, colon + 1);
	if (!err)
		err = add(fd, address, true, false, &row);
	if (err)
		close(fd);
	return err;
}

int control_connect(void)
{
	const char *address = environ_address();

	return address && !agent.is_second ? connect_to(address) : -ENOENT;
}

unsigned control_left(void)
{
	return __atomic_load_n(&agent.control.left, __ATOMIC_RELAXED);
}

/* Tracers that have not sent a LOOK yet do not count. */
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
		__atomic_store_n(&agent.control.left, looked ? all : 0, __ATOMIC_RELAXED);
}

bool control_rests(uint64_t cookie)
{
	for (unsigned i = 0; i < CONTROL_CHANNELS; i++)
		if (__atomic_load_n(&channels[i].fd, __ATOMIC_SEQ_CST) && channels[i].cookie == cookie)
			return __atomic_load_n(&channels[i].rests, __ATOMIC_RELAXED);
	return false;
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
	char addresses[CONTROL_CHANNELS][ABI_AGENT_ADDRESS];
	const char *own = environ_address();

	for (unsigned i = 0; i < CONTROL_CHANNELS; i++) {
		bool known = fd_of(&channels[i]) < 0 || (own && !strcmp(own, channels[i].address));

		for (unsigned k = 0; !known && k < i; k++)
			known = !strcmp(addresses[k], channels[i].address);
		memcpy(addresses[i], channels[i].address, sizeof(addresses[i]));
		if (known)
			addresses[i][0] = 0;
		drop(&channels[i]);
	}
	__atomic_store_n(&agent.control.waker, 0, __ATOMIC_SEQ_CST);
	for (unsigned i = 0; i < CONTROL_WAKERS; i++)
		free_waker(&wakers[i]);
	control_connect();
	for (unsigned i = 0; i < CONTROL_CHANNELS; i++)
		connect_to(addresses[i]);
	sum_up_left();
}

/* The end is no fault of what was traced until then. */
static const char *why_for(enum abi_agent_kind kind)
{
	if (agent.phase != AGENT_ENDED)
		return agent.why;
	return kind == ABI_AGENT_HELLO ?
	       "the interpreter in which it was is no more, and it sees nothing of another one in the same process" : "";
}

static void copy_why(char *to, const char *why)
{
	size_t length = strlen(why);

	if (length >= ABI_AGENT_WHY)
		length = ABI_AGENT_WHY - 1;
	memcpy(to, why, length);
	to[length] = 0;
}

static void send_phase(int fd, enum abi_agent_kind kind, uint32_t seq, uint64_t proof, enum abi_agent_phase phase)
{
	struct abi_agent_msg msg;

	if (fd < 0)
		return;
	memset(&msg, 0, sizeof(msg));
	msg.version = ABI_AGENT_VERSION;
	msg.kind = (uint16_t)kind;
	msg.seq = seq;
	msg.proof = proof;
	msg.pid = (uint32_t)syscall(SYS_getpid);
	msg.phase = phase;
	if (kind == ABI_AGENT_HELLO) {
		msg.python = agent.py.version_hex;
		msg.can = phase == ABI_AGENT_READY ? agent.can : 0;
	} else {
		msg.supplied = agent.supplied;
	}
	copy_why(msg.why, why_for(kind));
	send(fd, &msg, sizeof(msg), MSG_NOSIGNAL | MSG_DONTWAIT);
}

static void send_message(int fd, enum abi_agent_kind kind, uint32_t seq, uint64_t proof)
{
	send_phase(fd, kind, seq, proof, agent.phase == AGENT_READY ? ABI_AGENT_READY : ABI_AGENT_OFF);
}

void control_tell_another(void)
{
	for (unsigned i = 0; i < CONTROL_CHANNELS; i++)
		if (channels[i].looked)
			send_phase(fd_of(&channels[i]), ABI_AGENT_STATE, 0, 0, ABI_AGENT_ANOTHER);
}

/* The hooks are installed.  Did the program wait for that, which it may do from its start on? */
static bool went_on(struct channel *channel)
{
	return __atomic_exchange_n(&channel->start, CHANNEL_FREE, __ATOMIC_ACQ_REL) == CHANNEL_LATE;
}

static void greet(struct channel *channel, bool ready)
{
	channel->greeted = true;
	send_phase(fd_of(channel), ABI_AGENT_HELLO, 0, channel->proof, ready ? ABI_AGENT_READY : ABI_AGENT_OFF);
}

void control_greet(void)
{
	__typeof__(agent.phase) phase = agent.phase;	/* the interpreter may end meanwhile */

	for (unsigned i = 0; i < CONTROL_CHANNELS; i++) {
		if (fd_of(&channels[i]) < 0 || channels[i].greeted)
			continue;
		if (phase == AGENT_READY && channels[i].connected && !channels[i].proof)
			continue;
		/* It connected when it had an interpreter: nothing is to be told but the process's end, which the kernel tells. */
		if (phase == AGENT_ENDED && channels[i].connected)
			continue;
		greet(&channels[i], phase == AGENT_READY);
		if (phase >= AGENT_OFF)
			drop(&channels[i]);
	}
}

void control_refuse(int fd)
{
	send_message(fd, ABI_AGENT_HELLO, 0, 0);
}

static void set_end(struct channel *end, int fd)
{
	int high = high_duplicate(fd);

	if (high >= 0) {
		close(fd);
		fd = high;
	}
	end->cookie = cookie_of(fd);
	__atomic_store_n(&end->fd, fd, __ATOMIC_SEQ_CST);
}

/* The number, from 1, of a row with a new pair, or -errno. */
static int new_waker(void)
{
	int pair[2], err;

	for (int i = 0; i < CONTROL_WAKERS; i++) {
		int no = 0;

		if (!__atomic_compare_exchange_n(&wakers[i].taken, &no, 1, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
			continue;
		if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0) {
			err = -errno;
			__atomic_store_n(&wakers[i].taken, 0, __ATOMIC_SEQ_CST);
			return err;
		}
		set_end(&wakers[i].thread, pair[0]);
		set_end(&wakers[i].others, pair[1]);
		return i + 1;
	}
	return -EBUSY;
}

/* The end of the current pair for the agent's @thread, or for others; -1: none. */
static int waker_fd(bool thread)
{
	int row = __atomic_load_n(&agent.control.waker, __ATOMIC_SEQ_CST);

	return row ? fd_of(thread ? &wakers[row - 1].thread : &wakers[row - 1].others) : -1;
}

int control_make_waker(void)
{
	for (;;) {
		int old = __atomic_load_n(&agent.control.waker, __ATOMIC_SEQ_CST), row;

		if (old && fd_of(&wakers[old - 1].thread) >= 0 && fd_of(&wakers[old - 1].others) >= 0)
			return 0;
		row = new_waker();
		if (row < 0)
			return row;
		if (__atomic_compare_exchange_n(&agent.control.waker, &old, row, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)) {
			/* A thread that still waits for the old pair sees it closed. */
			if (old)
				free_waker(&wakers[old - 1]);
			return 0;
		}
		free_waker(&wakers[row - 1]);
	}
}

void control_wake(void)
{
	int fd = waker_fd(false);

	if (fd >= 0)
		send(fd, "", 1, MSG_NOSIGNAL | MSG_DONTWAIT);
}

int control_waits(struct pollfd *polled)
{
	polled[0] = (struct pollfd){ .fd = waker_fd(true), .events = POLLIN };
	for (int i = 0; i < CONTROL_CHANNELS; i++) {
		int fd = __atomic_load_n(&channels[i].fd, __ATOMIC_SEQ_CST);

		/* The program has closed this one. */
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

/* Receive a message and its descriptors; missing ones are -1. */
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
	const struct engine_who who = { msg->pid, msg->phase == ABI_AGENT_OTHER_PIDS,
					(msg->leave & ABI_CALLS_MEMORY) != 0 };
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
	send_message(fd_of(channel), ABI_AGENT_STATE, msg->seq, 0);
}

/*
 * Serve one message; false: the channel has ended.  While the tracer is there, a message that there is no memory for waits until
 * there is some: without it the script would have no events.
 */
static bool serve_one(struct channel *channel, int fd, bool is_there, void (*look)(void))
{
	struct abi_agent_msg msg;
	int fds[SEGMENT_FDS];
	ssize_t got = receive(fd, &msg, fds);

	if (got < 0)
		return errno == EAGAIN || errno == EINTR || (is_there && (errno == ENOMEM || errno == ENOBUFS));
	if (got != sizeof(msg) || msg.version != ABI_AGENT_VERSION) {
		close_all(fds);
		return false;
	}
	if (msg.kind == ABI_AGENT_SEGMENT) {
		take_segment(channel, fds, &msg);
		return true;
	}
	close_all(fds);
	if (msg.kind == ABI_AGENT_ASK) {
		channel->proof = msg.proof;
		if (agent.phase == AGENT_READY)
			greet(channel, true);
	}
	if (msg.kind == ABI_AGENT_LOOK) {
		channel->leave = msg.leave;
		if (channel->rests != (msg.phase == ABI_AGENT_REST)) {
			__atomic_store_n(&channel->rests, msg.phase == ABI_AGENT_REST, __ATOMIC_RELAXED);
			engine_rest_changed();
		}
		memcpy(channel->address, msg.why, sizeof(channel->address) - 1);
		channel->looked = true;
		sum_up_left();
		look();
		if (went_on(channel))
			send_phase(fd_of(channel), ABI_AGENT_STATE, msg.seq, 0, agent.phase == AGENT_READY ? ABI_AGENT_LATE : ABI_AGENT_OFF);
		else
			send_message(fd_of(channel), ABI_AGENT_STATE, msg.seq, 0);
	}
	return true;
}

bool control_can_wake(const struct pollfd *polled)
{
	return polled[0].fd >= 0 && polled[0].fd == waker_fd(true);
}

bool control_serve(const struct pollfd *polled, int n, void (*look)(void))
{
	bool ended = false;
	char byte[8];

	if (polled[0].revents && polled[0].fd == waker_fd(true))
		recv(polled[0].fd, byte, sizeof(byte), MSG_DONTWAIT);
	for (int i = 1; i < n; i++) {
		struct channel *channel = &channels[i - 1];

		if (!polled[i].revents || fd_of(channel) != polled[i].fd)
			continue;
		if (serve_one(channel, polled[i].fd, !(polled[i].revents & (POLLHUP | POLLERR)), look))
			continue;
		drop(channel);
		sum_up_left();
		ended = true;
	}
	return ended;
}

static bool any_asked(void)
{
	for (unsigned i = 0; i < CONTROL_CHANNELS; i++)
		if (fd_of(&channels[i]) >= 0 && !channels[i].looked && channels[i].proof)
			return true;
	return false;
}

static bool all_looked(void)
{
	for (unsigned i = 0; i < CONTROL_CHANNELS; i++)
		if (fd_of(&channels[i]) >= 0 && !channels[i].looked)
			return false;
	return true;
}

/* How long to wait for a tracer that is silent. */
static long long patience(void)
{
	return environ_is_held() ? ABI_AGENT_HELD_MS : any_asked() ? ABI_AGENT_ASKED_MS : ABI_AGENT_WAIT_MS;
}

/*
 * The agent's thread waits for the same messages.  One that it takes wakes nobody here, so the wait is in slices; and then its look
 * waits for the lock that this thread has, and would come after the program has gone on: so this thread looks as well.
 */
void control_first_look(void (*look)(void))
{
	enum { SLICE_MS = 5 };
	long long begin = agent_now_ms(), rest;
	struct pollfd polled[CONTROL_POLLED];

	while (!all_looked() && (rest = begin + patience() - agent_now_ms()) > 0) {
		int n = control_waits(polled);

		if (poll(polled, (unsigned)n, rest < SLICE_MS ? (int)rest : SLICE_MS) > 0 && environ_is_held())
			begin = agent_now_ms();
		control_serve(polled, n, look);
	}
	for (unsigned i = 0; i < CONTROL_CHANNELS; i++)
		if (fd_of(&channels[i]) >= 0 && !channels[i].looked)
			channels[i].start = CHANNEL_LATE;
	look();
}
