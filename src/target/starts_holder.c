/*
 * The holder: a process with one thread that hears, and one for each program that is being held.
 *
 * Whom it believes: it listens in a guarded folder, where root alone may connect, and serves those of the same user and pid
 * namespace that may trace others anyway (starts_is_tracer()).
 *
 * PTRACE_SEIZE waits while another thread has the process's cred_guard_mutex, and execve() has it while the kernel asks for an
 * interpreter that a #! line names, before Linux 6.8 for any program.  So the thread that seizes waits for it, and the other one
 * answers the kernel after ALLOW_US if it has not come back; then the mutex is free before the exec is done, and the stop of
 * PTRACE_EVENT_EXEC is still to come if the thread that seizes is quick, for which it has a real-time priority.  If it is not,
 * the process is stopped before its first instruction, or else let go.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/fanotify.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/now.h"
#include "target/askfolder.h"
#include "target/starts.h"
#include "target/starts_priv.h"

enum {
	HELD = 32,		/* at a time; more are let go */
	TRACERS = 64,		/* a bit each in struct held; more start a holder of their own */
	EVENTS = 8,		/* read at a time */
	ALLOW_US = 500,		/* after the thread has begun to seize */
	ALLOW_MOST_US = 20000,	/* since the kernel has asked */
	STOP_US = 50000,	/* for PTRACE_EVENT_EXEC, after the kernel has been answered */
	NAP_NS = 50000,
	LEASE_MS = 100,
	RENEW_MS = 20,
	STACK = 256 * 1024,
};

struct tracer {
	bool used, joined;		/* @joined: @bring is set */
	bool late;			/* it has not answered in time, and is not asked until it does */
	int sock;
	struct starts_bring bring;
};

struct held {
	bool used;
	int event;			/* the kernel's question; -1: answered */
	pid_t pid;
	uint64_t turn, since_us;
	uint64_t seizes_us;		/* when its thread began to seize; 0: not yet */
	uint64_t pending;		/* tracers that are asked, and have not answered */
	uint64_t wanted;		/* tracers that want it */
};

static struct {
	int fan, listener;		/* @listener: -1: it cannot be found by others */
	struct guarded folder;		/* with its name */
	pthread_mutex_t lock;
	pthread_cond_t said;
	struct held held[HELD];
	struct tracer tracers[TRACERS];
	uint64_t turn;
} holder = { .listener = -1, .lock = PTHREAD_MUTEX_INITIALIZER };

static void let(int event)
{
	struct fanotify_response yes = { event, FAN_ALLOW };

	while (write(holder.fan, &yes, sizeof(yes)) < 0 && errno == EINTR)
		;
	close(event);
}

/* Answer the kernel about @h, once.  False: it has been answered. */
static bool allow(struct held *h)
{
	int event;

	pthread_mutex_lock(&holder.lock);
	event = h->event;
	h->event = -1;
	pthread_mutex_unlock(&holder.lock);
	if (event >= 0)
		let(event);
	return event >= 0;
}

static bool send_to(const struct tracer *t, const struct starts_msg *m)
{
	return send(t->sock, m, sizeof(*m), MSG_NOSIGNAL | MSG_DONTWAIT) == sizeof(*m);
}

/* Ask all tracers about @h, and wait for them.  What it is to bring in @bring; false: nobody wants it. */
static bool ask(struct held *h, struct starts_bring *bring)
{
	const struct starts_msg m = { .kind = STARTS_ASK, .pid = h->pid, .turn = h->turn };
	struct timespec end;
	bool ret;

	clock_gettime(CLOCK_MONOTONIC, &end);
	end.tv_nsec += STARTS_MS * 1000000l;
	end.tv_sec += end.tv_nsec / 1000000000;
	end.tv_nsec %= 1000000000;
	pthread_mutex_lock(&holder.lock);
	for (int i = 0; i < TRACERS; i++)
		if (holder.tracers[i].joined && !holder.tracers[i].late && send_to(&holder.tracers[i], &m))
			h->pending |= UINT64_C(1) << i;
	while (h->pending && !pthread_cond_timedwait(&holder.said, &holder.lock, &end))
		;
	for (int i = 0; i < TRACERS; i++)
		if (h->pending >> i & 1)
			holder.tracers[i].late = true;
	h->pending = 0;
	ret = h->wanted;
	if (ret)
		*bring = holder.tracers[__builtin_ctzll(h->wanted)].bring;
	pthread_mutex_unlock(&holder.lock);
	return ret;
}

/* Instead of a status of waitpid(). */
enum { ENDED = -1, NO_STOP = -2 };

/* Wait for a stop of @h, at most @us: its status, ENDED, or NO_STOP in that time. */
static int stop_of(const struct held *h, uint64_t us)
{
	const struct timespec nap = { .tv_nsec = NAP_NS };
	uint64_t end = now_us() + us;
	int status;
	pid_t got;

	do {
		got = waitpid(h->pid, &status, __WALL | WNOHANG);
		if (got == h->pid)
			return WIFSTOPPED(status) ? status : ENDED;
		if (got < 0 && errno != EINTR)
			return ENDED;
		nanosleep(&nap, NULL);
	} while (now_us() < end);
	return NO_STOP;
}

/* Is it stopped where its image begins? */
static bool is_at_start(const struct held *h, int status)
{
	if (status < 0)
		return false;
	if (status >> 8 == (SIGTRAP | PTRACE_EVENT_EXEC << 8))
		return true;
	return status >> 8 == (SIGTRAP | PTRACE_EVENT_STOP << 8) && starts_is_new(h->pid);
}

/* It is seized by this thread; @late: perhaps after the stop at its exec. */
static void hold(struct held *h, bool late)
{
	struct starts_bring bring;
	int status;

	if (late)
		ptrace(PTRACE_INTERRUPT, h->pid, NULL, NULL);
	status = stop_of(h, STOP_US);
	if (status == NO_STOP) {	/* its exec has failed, or it was seized too late */
		ptrace(PTRACE_INTERRUPT, h->pid, NULL, NULL);
		status = stop_of(h, 100 * STOP_US);
	}
	if (is_at_start(h, status) && ask(h, &bring))
		starts_write(h->pid, &bring);
	/* A signal on its way arrives.  When a thread ends the kernel lets go what it has seized. */
	if (status >= 0)
		ptrace(PTRACE_DETACH, h->pid, NULL, (void *)(uintptr_t)(status >> 16 ? 0 : WSTOPSIG(status)));
}

static void give_back(struct held *h)
{
	pthread_mutex_lock(&holder.lock);
	h->used = false;
	pthread_mutex_unlock(&holder.lock);
}

static void *work(void *arg)
{
	const struct sched_param first = { .sched_priority = 1 };
	struct held *h = arg;
	bool seized, late;

	pthread_setschedparam(pthread_self(), SCHED_FIFO, &first);	/* where it may not, it is late more often */
	pthread_mutex_lock(&holder.lock);
	h->seizes_us = now_us();
	pthread_mutex_unlock(&holder.lock);
	seized = !ptrace(PTRACE_SEIZE, h->pid, NULL, (void *)(uintptr_t)PTRACE_O_TRACEEXEC);
	late = !allow(h);
	if (seized)
		hold(h, late);
	give_back(h);
	return NULL;
}

/* Is @pid the first thread of its process? */
static bool is_first(pid_t pid)
{
	char path[48];

	snprintf(path, sizeof(path), "/proc/%d/task/%d", (int)pid, (int)pid);
	return access(path, F_OK) == 0;
}

/* Is there a tracer that answers? */
static bool has_tracer(void)
{
	for (int i = 0; i < TRACERS; i++)
		if (holder.tracers[i].joined && !holder.tracers[i].late)
			return true;
	return false;
}

static struct held *take(pid_t pid, int event)
{
	struct held *h = NULL;

	pthread_mutex_lock(&holder.lock);
	for (size_t i = 0; i < HELD && !h && has_tracer(); i++)
		if (!holder.held[i].used)
			h = &holder.held[i];
	if (h)
		*h = (struct held){ .used = true, .event = event, .pid = pid, .turn = ++holder.turn, .since_us = now_us() };
	pthread_mutex_unlock(&holder.lock);
	return h;
}

/* Those that are not asked about programs are asked about nobody, so that an answer shows that they are there again. */
static void knock(void)
{
	const struct starts_msg m = { .kind = STARTS_ASK };

	pthread_mutex_lock(&holder.lock);
	for (int i = 0; i < TRACERS; i++)
		if (holder.tracers[i].late)
			send_to(&holder.tracers[i], &m);
	pthread_mutex_unlock(&holder.lock);
}

static bool has_late(void)
{
	bool late = false;

	pthread_mutex_lock(&holder.lock);
	for (int i = 0; i < TRACERS; i++)
		late = late || holder.tracers[i].late;
	pthread_mutex_unlock(&holder.lock);
	return late;
}

static void hear_kernel(const pthread_attr_t *attr)
{
	/* Each event has a descriptor; if there were none for one, the kernel would refuse the exec. */
	char room[EVENTS * sizeof(struct fanotify_event_metadata)] __attribute__((aligned(8)));
	const struct fanotify_event_metadata *e;
	ssize_t n = read(holder.fan, room, sizeof(room));
	struct held *h;
	pthread_t thread;

	if (n <= 0)
		return;
	for (e = (void *)room; FAN_EVENT_OK(e, n); e = FAN_EVENT_NEXT(e, n)) {
		if (e->fd < 0)
			continue;
		h = e->pid > 0 && is_first(e->pid) ? take(e->pid, e->fd) : NULL;
		if (!h) {
			let(e->fd);
		} else if (pthread_create(&thread, attr, work, h)) {
			allow(h);
			give_back(h);
		}
	}
}

/* --- tracers -------------------------------------------------------------------------------------------- */

static void hear_answer(int i, const struct starts_msg *m)
{
	pthread_mutex_lock(&holder.lock);
	holder.tracers[i].late = false;
	for (size_t k = 0; k < HELD; k++) {
		struct held *h = &holder.held[k];

		if (!h->used || h->turn != m->turn || !(h->pending >> i & 1))
			continue;
		h->pending &= ~(UINT64_C(1) << i);
		h->wanted |= (uint64_t)(m->wanted == 1) << i;
	}
	pthread_cond_broadcast(&holder.said);
	pthread_mutex_unlock(&holder.lock);
}

static void join(struct tracer *t, const struct starts_bring *bring)
{
	const struct starts_msg ready = { .kind = STARTS_READY };

	pthread_mutex_lock(&holder.lock);
	t->bring = *bring;
	t->bring.path[sizeof(t->bring.path) - 1] = 0;
	t->bring.address[sizeof(t->bring.address) - 1] = 0;
	t->joined = true;
	pthread_mutex_unlock(&holder.lock);
	send_to(t, &ready);
}

/* Hear tracer @i.  False: it has ended, or is none. */
static bool hear_tracer(int i)
{
	union { struct cmsghdr h; char room[CMSG_SPACE(sizeof(int))]; } control = { 0 };
	struct tracer *t = &holder.tracers[i];
	struct starts_join m;
	struct iovec iov = { &m, sizeof(m) };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof(control) };
	ssize_t n = recvmsg(t->sock, &msg, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	struct cmsghdr *c = n > 0 ? CMSG_FIRSTHDR(&msg) : NULL;
	char path[32];
	int fd;

	if (n < 0)
		return errno == EAGAIN || errno == EINTR;
	if (c && c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS) {
		memcpy(&fd, CMSG_DATA(c), sizeof(fd));
		snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
		fanotify_mark(holder.fan, FAN_MARK_ADD, FAN_OPEN_EXEC_PERM, AT_FDCWD, path);
		close(fd);
	}
	if (n == sizeof(m.head) && m.head.kind == STARTS_ANSWER)
		hear_answer(i, &m.head);
	else if (n == sizeof(m) && m.head.kind == STARTS_JOIN && !t->joined)
		join(t, &m.bring);
	return n > 0;
}

static struct tracer *add_tracer(int sock)
{
	struct tracer *t = NULL;

	pthread_mutex_lock(&holder.lock);
	for (int i = 0; i < TRACERS && !t; i++)
		if (!holder.tracers[i].used)
			t = &holder.tracers[i];
	if (t)
		*t = (struct tracer){ .used = true, .sock = sock };
	pthread_mutex_unlock(&holder.lock);
	return t;
}

static bool is_alone(const struct tracer *t)
{
	for (int i = 0; i < TRACERS; i++)
		if (holder.tracers[i].used && &holder.tracers[i] != t)
			return false;
	return true;
}

/* After the last one the holder ends, and with it its sockets: whoever waits for that finds no name of it any more. */
static void remove_tracer(int i)
{
	const struct starts_msg left = { .kind = STARTS_LEFT };
	struct tracer *t = &holder.tracers[i];

	if (is_alone(t)) {
		if (holder.listener >= 0) {
			unlinkat(holder.folder.fd, STARTS_NAME, 0);
			askfolder_remove();
		}
		_exit(0);
	}
	pthread_mutex_lock(&holder.lock);
	send_to(t, &left);
	close(t->sock);
	*t = (struct tracer){ 0 };
	for (size_t k = 0; k < HELD; k++) {
		holder.held[k].pending &= ~(UINT64_C(1) << i);
		holder.held[k].wanted &= ~(UINT64_C(1) << i);
	}
	pthread_cond_broadcast(&holder.said);
	pthread_mutex_unlock(&holder.lock);
}

static void hear_newcomer(void)
{
	int fd = accept4(holder.listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	struct ucred who;
	socklen_t len = sizeof(who);

	if (fd >= 0 && (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &len) || !starts_is_tracer(who.pid) || !add_tracer(fd)))
		close(fd);
}

/* Give the socket @fd, which listens as @fresh, the holder's name, unless another holder has it. */
static int take_name(const char *path, const char *fresh)
{
	int folder = holder.folder.fd, err = 0;

	if (linkat(folder, fresh, folder, STARTS_NAME, 0))
		err = -errno;
	if (err == -EEXIST && askfolder_is_dead(path, STARTS_NAME) && !unlinkat(folder, STARTS_NAME, 0))
		err = linkat(folder, fresh, folder, STARTS_NAME, 0) ? -errno : 0;
	unlinkat(folder, fresh, 0);
	return err;
}

/* Listen for other tracers.  If that does not work, they have holders of their own. */
static void listen_for_tracers(void)
{
	char path[ABI_ASK_PATH], fresh[32];
	struct sockaddr_un at;
	int fd;

	if (askfolder_open(&holder.folder))
		return;
	askfolder_path(path);
	snprintf(fresh, sizeof(fresh), ASKFOLDER_NEW "hold-%d", (int)getpid());
	unlinkat(holder.folder.fd, fresh, 0);
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd >= 0 && !bind(fd, (struct sockaddr *)&at, askfolder_address(&at, path, fresh)) &&
	    !fchmodat(holder.folder.fd, fresh, 0600, 0) && !listen(fd, TRACERS) && !take_name(path, fresh)) {
		holder.listener = fd;
		return;
	}
	if (fd >= 0) {
		unlinkat(holder.folder.fd, fresh, 0);
		close(fd);
	}
	guarded_close(&holder.folder);
}

/* --- the thread that hears ------------------------------------------------------------------------------ */

/* Answer the kernel about those whose seizing waits; is there another one? */
static bool allow_waiting(void)
{
	uint64_t now = now_us();
	bool more = false;

	for (size_t i = 0; i < HELD; i++) {
		struct held *h = &holder.held[i];
		bool waits, due;

		pthread_mutex_lock(&holder.lock);
		waits = h->used && h->event >= 0;
		due = waits && ((h->seizes_us && now >= h->seizes_us + ALLOW_US) || now >= h->since_us + ALLOW_MOST_US);
		pthread_mutex_unlock(&holder.lock);
		if (due)
			allow(h);
		else if (waits)
			more = true;
	}
	return more;
}

/* Wait for the kernel and the tracers, and hear them. */
static void turn(const struct timespec *most, const pthread_attr_t *attr)
{
	struct pollfd fds[2 + TRACERS] = { { .fd = holder.fan, .events = POLLIN }, { .fd = holder.listener, .events = POLLIN } };

	for (int i = 0; i < TRACERS; i++)
		fds[2 + i] = (struct pollfd){ .fd = holder.tracers[i].used ? holder.tracers[i].sock : -1, .events = POLLIN };
	if (ppoll(fds, 2 + TRACERS, most, NULL) <= 0)
		return;
	if (fds[0].revents)
		hear_kernel(attr);
	for (int i = 0; i < TRACERS; i++)
		if (fds[2 + i].revents && !hear_tracer(i))
			remove_tracer(i);
	if (fds[1].revents)
		hear_newcomer();
}

/*
 * The kernel ends the holder with SIGKILL if it does not renew its lease in time: a signal that stops it, or the freezer of a
 * cgroup, would else let no program of the machine start.  The timer is the kernel's, so it needs nobody who runs.  False: none
 * can be had (RLIMIT_SIGPENDING), so nobody may be held.
 */
static bool begin_lease(timer_t *lease)
{
	struct sigevent end = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGKILL };

	return !timer_create(CLOCK_MONOTONIC, &end, lease);
}

static void renew(timer_t lease)
{
	const struct itimerspec end = { .it_value.tv_nsec = LEASE_MS * 1000000l };

	timer_settime(lease, 0, &end, NULL);
}

void starts_hold(int fan, int sock, const struct starts_bring *bring)
{
	const struct timespec soon = { .tv_nsec = ALLOW_US * 1000 / 2 }, renewal = { .tv_nsec = RENEW_MS * 1000000l };
	const struct sched_param first = { .sched_priority = 1 };
	pthread_condattr_t clock;
	uint64_t knocked_ms = 0;
	pthread_attr_t attr;
	timer_t lease;

	if (!begin_lease(&lease))
		return;
	pthread_setschedparam(pthread_self(), SCHED_FIFO, &first);
	holder.fan = fan;
	pthread_condattr_init(&clock);
	pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
	pthread_cond_init(&holder.said, &clock);
	pthread_attr_init(&attr);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	pthread_attr_setstacksize(&attr, STACK);
	listen_for_tracers();
	join(add_tracer(sock), bring);
	for (;;) {
		bool waits = allow_waiting();

		renew(lease);
		if (has_late() && now_ms() - knocked_ms >= 1000) {
			knock();
			knocked_ms = now_ms();
		}
		turn(waits ? &soon : &renewal, &attr);
	}
}
