/*
 * Incoming connections: how an unknown client ("stranger") becomes a peer.
 *
 * The socket has a random name in the abstract namespace: it leaves no file behind, and the kernel removes it when the
 * tracer ends.  Anybody on the machine can see the name (/proc/net/unix) and connect.  So a stranger is sent nothing
 * and may send one message, within a second; the number of strangers is limited, and the tracer never waits for one.
 *
 *	connect ─► STRANGER ──PROOF, the word──► NEW, asked ──HELLO, the number──► READY
 *	              └─ anything else, too late: closed        └─ from another process: closed
 *
 * The word (abi/agent.h) is a secret that a process gets in its environment or over a channel (ABI_AGENT_LOOK), and a
 * child of fork in the memory that it inherits.  So whoever knows it was chosen by the tracer, or is a descendant of
 * such a process, even if its parent has changed since.  The kernel reports the process's id.  The tracer examines that
 * process before it sends ASK, the process itself must answer, and must be unchanged afterwards: so it cannot have
 * passed the socket on or executed a program with other rights meanwhile, and its id cannot have been reused.  This
 * also works on kernels without SO_PEERPIDFD (before 6.5).
 */
#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/now.h"
#include "base/oom.h"
#include "target/agent_priv.h"

#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77
#endif

enum {
	BACKLOG = 4096,		/* the kernel limits it to net.core.somaxconn */
	STRANGERS = 64,
	STRANGERS_OF_USER = 8,
	STRANGER_MS = 1000,
	TAKEN = 256,		/* connections accepted at a time */
	ASKED = 4,		/* ASKs per channel: one is repeated if the process has changed its rights meanwhile */
	CHANNELS_OF_PROCESS = 4,
};

int listen_open(struct agents *a, struct strbuf *why)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	uint64_t random[3];
	sigset_t ends;
	int err, on = 1;
	size_t len;

	_Static_assert(ABI_AGENT_WORD == 2 * 2 * sizeof(*random), "the word");
	if (getrandom(random, sizeof(random), 0) != sizeof(random))
		return target_fail_errno(why, -errno, "cannot listen for agents");
	len = (size_t)snprintf(a->address, sizeof(a->address), "dtap-%d-%016llx", (int)getpid(),
			       (unsigned long long)random[0]);
	memcpy(addr.sun_path + 1, a->address, len);
	snprintf(a->address + len, sizeof(a->address) - len, ":%016llx%016llx", (unsigned long long)random[1],
		 (unsigned long long)random[2]);
	a->word = a->address + len + 1;
	a->epoll = epoll_create1(EPOLL_CLOEXEC);
	a->listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	a->timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	sigemptyset(&ends);
	for (int k = 0; k < 4; k++)
		sigaddset(&ends, (int[]){ SIGINT, SIGTERM, SIGHUP, SIGQUIT }[k]);
	a->signals = signalfd(-1, &ends, SFD_CLOEXEC | SFD_NONBLOCK);
	/*
	 * The kernel adds the sender's credentials to a packet only if the receiving socket has SO_PASSCRED when the
	 * packet is sent.  An accepted socket inherits it from the listener, so that even the first packet has them.
	 */
	if (a->epoll < 0 || a->listener < 0 || a->timer < 0 || a->signals < 0 ||
	    setsockopt(a->listener, SOL_SOCKET, SO_PASSCRED, &on, sizeof(on)) ||
	    bind(a->listener, (struct sockaddr *)&addr, (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + len)) ||
	    listen(a->listener, BACKLOG))
		return target_fail_errno(why, -errno, "cannot listen for agents");
	err = channel_watch(a, a->listener, NULL);
	if (!err)
		err = channel_watch(a, a->timer, &a->timer);
	return err ? target_fail_errno(why, err, "cannot listen for agents") : 0;
}

/* --- strangers ------------------------------------------------------------------------------------------ */

/* Remove @c from the list of strangers. */
static void take_out(struct agents *a, struct channel *c)
{
	struct channel **at = &a->strangers;

	while (*at != c)
		at = &(*at)->next;
	*at = c->next;
	a->nstrangers--;
}

static void drop(struct agents *a, struct channel *c)
{
	take_out(a, c);
	channel_end(a, c);
}

void listen_close(struct agents *a)
{
	while (a->strangers)
		drop(a, a->strangers);
	for (int k = 0; k < 2; k++) {
		int fd = (int[]){ a->listener, a->timer }[k];

		if (fd >= 0)
			close(fd);
	}
}

/*
 * Set the timer to the deadline of the oldest stranger, which is the last one in the list.  If there is none and the
 * tracer has run out of descriptors, set it to the time of the next attempt to accept.
 */
static void set_timer(struct agents *a)
{
	uint64_t ms = a->is_full ? now_ms() + STRANGER_MS : 0;
	struct itimerspec at = { 0 };
	const struct channel *c;

	for (c = a->strangers; c; c = c->next)
		ms = c->until_ms;
	at.it_value = (struct timespec){ (time_t)(ms / 1000), (long)(ms % 1000) * 1000000 };
	timerfd_settime(a->timer, TFD_TIMER_ABSTIME, &at, NULL);
}

void listen_expire(struct agents *a)
{
	struct channel *c, *next;
	uint64_t now = now_ms(), ticks;

	while (read(a->timer, &ticks, sizeof(ticks)) == sizeof(ticks))
		;
	for (c = a->strangers; c; c = next) {
		next = c->next;
		if (c->until_ms <= now)
			drop(a, c);
	}
	listen_again(a);
	set_timer(a);
}

/* Make room for one more stranger of user @uid by dropping the oldest. */
static void make_room(struct agents *a, uid_t uid)
{
	struct channel *c, *oldest = NULL, *of_user = NULL;
	unsigned int n = 0;

	for (c = a->strangers; c; c = c->next) {
		oldest = c;
		if (c->uid == uid) {
			of_user = c;
			n++;
		}
	}
	if (n >= STRANGERS_OF_USER)
		drop(a, of_user);
	else if (a->nstrangers >= STRANGERS)
		drop(a, oldest);
}

/* Processes of the same user or of root may connect; if the tracer is root, all.  pid 0: not in our pid namespace. */
static bool may_connect(const struct ucred *who)
{
	return who->pid > 0 && (geteuid() == 0 || who->uid == 0 || who->uid == geteuid());
}

/* There is no room for what may be an agent. */
static void turn_away(struct agents *a, pid_t pid, int err)
{
	struct channel c = { .fd = -1, .peer = { .pid = pid, .pidfd = -1 } };

	channel_refuse(a, &c, strerror(-err));
	free(c.why);
}

static void take(struct agents *a, int fd)
{
	struct ucred who;
	socklen_t len = sizeof(who);
	struct channel *c = NULL;
	int err = -EPERM;

	if (!getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &len) && may_connect(&who)) {
		c = calloc(1, sizeof(*c));
		err = c ? channel_watch(a, fd, c) : -ENOMEM;
		if (err)
			turn_away(a, who.pid, err);
	}
	if (err) {
		free(c);
		close(fd);
		return;
	}
	make_room(a, who.uid);
	*c = (struct channel){ .next = a->strangers, .fd = fd, .state = CHANNEL_STRANGER, .uid = who.uid,
			       .peer = { .pid = who.pid, .pidfd = -1 }, .until_ms = now_ms() + STRANGER_MS };
	a->strangers = c;
	a->nstrangers++;
	listen_hear(a, c);	/* the agent sends the word as soon as it is connected */
	set_timer(a);
}

static void tell_full(struct agents *a, int err)
{
	const struct agents_event e = { .what = AGENTS_WAIT, .why = strerror(err) };

	if (a->fn && !a->told_full)
		a->fn(a->ctx, &e);
	a->told_full = true;
}

/* When descriptors or memory run out, do not accept until a channel's descriptor is free again or the timer expires. */
void listen_take(struct agents *a)
{
	int fd = -1, n;

	for (n = 0; n < TAKEN; n++) {
		fd = accept4(a->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
		if (fd < 0 && errno != ECONNABORTED)
			break;
		if (fd >= 0)
			take(a, fd);
	}
	if (fd < 0 && is_shortage(-errno)) {
		tell_full(a, errno);
		a->is_full = !epoll_ctl(a->epoll, EPOLL_CTL_DEL, a->listener, NULL);
		set_timer(a);
	}
}

void listen_again(struct agents *a)
{
	if (a->is_full)
		a->is_full = channel_watch(a, a->listener, NULL) != 0;
	if (a->is_asked_full)
		a->is_asked_full = channel_watch(a, a->asked, &a->asked) != 0;
}

/* --- proof ---------------------------------------------------------------------------------------------- */

/* Compare in constant time, so that the duration does not show how many bytes are right. */
static bool is_word(const struct agents *a, const char *said)
{
	unsigned char wrong = (unsigned char)said[ABI_AGENT_WORD];

	for (int i = 0; i < ABI_AGENT_WORD; i++)
		wrong |= (unsigned char)(a->word[i] ^ said[i]);
	return !wrong;
}

bool listen_ask(struct agents *a, struct channel *c)
{
	struct abi_agent_msg m = { .version = ABI_AGENT_VERSION, .kind = ABI_AGENT_ASK };
	pid_t pid = c->peer.pid;
	socklen_t len = sizeof(int);
	int pidfd = -1, err;

	if (c->nasked++ >= ASKED)
		return false;
	if (c->state != CHANNEL_STRANGER)
		peer_fini(&c->peer);
	if (getsockopt(c->fd, SOL_SOCKET, SO_PEERPIDFD, &pidfd, &len))
		pidfd = -1;
	err = peer_prove(pid, pidfd, &c->peer, NULL);
	if (pidfd >= 0)
		close(pidfd);
	if (err) {
		c->peer = (struct peer){ .pid = pid, .pidfd = -1 };
		if (err != -ESRCH)	/* not the process's fault: it knows the word */
			channel_refuse(a, c, strerror(-err));
		return false;
	}
	if (getrandom(&c->proof, sizeof(c->proof), 0) != sizeof(c->proof) || !c->proof)
		return false;
	m.proof = c->proof;
	if (send(c->fd, &m, sizeof(m), MSG_NOSIGNAL | MSG_DONTWAIT) == sizeof(m))
		return true;
	channel_not_sent(a, c);
	return false;
}

static unsigned int channels_of(const struct agents *a, pid_t pid)
{
	const struct channel *c;
	unsigned int n = 0;

	for (c = a->channels; c; c = c->next)
		n += c->peer.pid == pid;
	return n;
}

void listen_hear(struct agents *a, struct channel *c)
{
	struct abi_agent_msg m;
	pid_t sender;
	ssize_t n = channel_receive(c->fd, &m, &sender);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n != sizeof(m) || m.kind != ABI_AGENT_PROOF || !is_word(a, m.why)) {
		drop(a, c);
	} else if (m.version != ABI_AGENT_VERSION) {
		channel_tell_lost(a, c);
		channel_tell(a, c, AGENTS_GONE, 0);
		drop(a, c);
	} else if (sender != c->peer.pid || channels_of(a, sender) >= CHANNELS_OF_PROCESS || !listen_ask(a, c)) {
		drop(a, c);
	} else {
		take_out(a, c);
		c->state = CHANNEL_NEW;
		c->next = a->channels;
		a->channels = c;
	}
}
