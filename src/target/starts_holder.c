/*
 * The holder: a process with one thread that hears, and one for each program that is being held.
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
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/now.h"
#include "target/starts.h"
#include "target/starts_priv.h"

enum {
	HELD = 32,		/* at a time; more are let go */
	EVENTS = 8,		/* read at a time */
	ALLOW_US = 500,		/* after the thread has begun to seize */
	ALLOW_MOST_US = 20000,	/* since the kernel has asked */
	STOP_US = 50000,	/* for PTRACE_EVENT_EXEC, after the kernel has been answered */
	NAP_NS = 50000,
	STACK = 256 * 1024,
};

struct held {
	bool used, said;		/* the tracer has said @wanted */
	bool wanted;
	int event;			/* the kernel's question; -1: answered */
	pid_t pid;
	uint64_t turn, since_us;
	uint64_t seizes_us;		/* when its thread began to seize; 0: not yet */
};

static struct {
	int fan, sock;
	const struct starts_bring *bring;
	pthread_mutex_t lock;
	pthread_cond_t said;
	struct held held[HELD];
	uint64_t turn;
	bool late;			/* the tracer has not answered in time; nobody is held until it does */
} holder = { .lock = PTHREAD_MUTEX_INITIALIZER };

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

/* Ask the tracer; false also if it does not answer in time. */
static bool ask(struct held *h)
{
	struct starts_msg m = { .kind = STARTS_ASK, .pid = h->pid, .turn = h->turn };
	struct timespec end;
	bool ret;

	if (send(holder.sock, &m, sizeof(m), MSG_NOSIGNAL | MSG_DONTWAIT) != sizeof(m))
		return false;
	clock_gettime(CLOCK_MONOTONIC, &end);
	end.tv_nsec += STARTS_MS * 1000000l;
	end.tv_sec += end.tv_nsec / 1000000000;
	end.tv_nsec %= 1000000000;
	pthread_mutex_lock(&holder.lock);
	while (!h->said && !pthread_cond_timedwait(&holder.said, &holder.lock, &end))
		;
	if (!h->said)
		holder.late = true;
	ret = h->said && h->wanted;
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
	int status;

	if (late)
		ptrace(PTRACE_INTERRUPT, h->pid, NULL, NULL);
	status = stop_of(h, STOP_US);
	if (status == NO_STOP) {	/* its exec has failed, or it was seized too late */
		ptrace(PTRACE_INTERRUPT, h->pid, NULL, NULL);
		status = stop_of(h, 100 * STOP_US);
	}
	if (is_at_start(h, status) && ask(h))
		starts_write(h->pid, holder.bring);
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

static struct held *take(pid_t pid, int event)
{
	struct held *h = NULL;

	pthread_mutex_lock(&holder.lock);
	for (size_t i = 0; i < HELD && !h && !holder.late; i++)
		if (!holder.held[i].used)
			h = &holder.held[i];
	if (h)
		*h = (struct held){ .used = true, .event = event, .pid = pid, .turn = ++holder.turn, .since_us = now_us() };
	pthread_mutex_unlock(&holder.lock);
	return h;
}

/* While nobody is held, the tracer is asked about nobody, so that its answer shows that it is there again. */
static void knock(void)
{
	struct starts_msg m = { .kind = STARTS_ASK };

	send(holder.sock, &m, sizeof(m), MSG_NOSIGNAL | MSG_DONTWAIT);
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

static void hear_answer(const struct starts_msg *m)
{
	pthread_mutex_lock(&holder.lock);
	holder.late = false;
	for (size_t i = 0; i < HELD; i++)
		if (holder.held[i].used && holder.held[i].turn == m->turn) {
			holder.held[i].said = true;
			holder.held[i].wanted = m->wanted == 1;
		}
	pthread_cond_broadcast(&holder.said);
	pthread_mutex_unlock(&holder.lock);
}

/* False: the tracer has ended. */
static bool hear_tracer(void)
{
	union { struct cmsghdr h; char room[CMSG_SPACE(sizeof(int))]; } control = { 0 };
	struct starts_msg m;
	struct iovec iov = { &m, sizeof(m) };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof(control) };
	ssize_t n = recvmsg(holder.sock, &msg, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
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
	if (n == sizeof(m) && m.kind == STARTS_ANSWER)
		hear_answer(&m);
	return n > 0;
}

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

void starts_hold(int fan, int sock, const struct starts_bring *bring)
{
	struct pollfd fds[] = { { .fd = sock, .events = POLLIN }, { .fd = fan, .events = POLLIN } };
	const struct timespec soon = { .tv_nsec = ALLOW_US * 1000 / 2 }, knocks = { .tv_sec = 1 };
	const struct sched_param first = { .sched_priority = 1 };
	pthread_condattr_t clock;
	pthread_attr_t attr;
	bool late;

	pthread_setschedparam(pthread_self(), SCHED_FIFO, &first);
	holder.fan = fan;
	holder.sock = sock;
	holder.bring = bring;
	pthread_condattr_init(&clock);
	pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
	pthread_cond_init(&holder.said, &clock);
	pthread_attr_init(&attr);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	pthread_attr_setstacksize(&attr, STACK);
	for (;;) {
		bool waits = allow_waiting();

		pthread_mutex_lock(&holder.lock);
		late = holder.late;
		pthread_mutex_unlock(&holder.lock);
		if (ppoll(fds, 2, waits ? &soon : late ? &knocks : NULL, NULL) == 0 && !waits && late)
			knock();
		if (fds[0].revents && !hear_tracer())
			return;
		if (fds[1].revents)
			hear_kernel(&attr);
	}
}
