/*
 * Bringing the object into a running process.
 *
 * One thread is stopped, at a safe point, and sent through a chain of calls (chain.h): it makes a socket pair, of which
 * we take one end by pidfd_getfd; it loads the object, by its path or, where it cannot see that, through a descriptor
 * that it is sent over the pair; and it calls the object's entry point with its end.  The descriptor is of the
 * same file, so kernel probes on the file work there too; it needs /proc in the process's root.
 *
 * The chain is complete from the start with what closes the descriptors again; the calls that lead on are put in when
 * their arguments are known.  Wherever the tracer dies, the rest is a good end, but for the moment between the return of
 * dlopen and the call of the entry point: then the object stays, and does nothing.
 *
 * ptrace belongs to a thread: attaching runs in one of its own, whose end takes the kernel's hand off every thread
 * that would not stop in time.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/now.h"
#include "target/agent_priv.h"
#include "target/chain.h"
#include "target/safepoint.h"
#include "target/seccomp.h"

/* The calls of the chain. */
enum {
	PAIR,
	CLOSE_PEER,		/* at first: copy both ends to the arguments below */
	NAME_TRACER,		/* at the program's entry */
	LOAD_PATH,		/* at first: one of them */
	RECEIVE,		/* at first: the other */
	LOAD_FD,		/* at first: close one end */
	CLOSE_OBJECT,		/* at first: close the other */
	ENTER,			/* or close our end */
	CLOSE_OWN,
	PUT_ERRNO,
	NCALLS,
};

enum {
	GIVE_UP_MS = 5000,	/* no thread at a safe point */
	HASTY_MS = 5,
	REFUSED_MS = 500,	/* ptrace is refused */
	STOP_MS = 50,		/* a thread that does not stop: another one */
	CALL_MS = 10000,
	NAP_MAX_NS = 2000000,
	THREADS_MAX = 32,	/* that are tried in a round */
	PATH_ROOM = 400,
	ENV_ROOM = sizeof(ABI_AGENT_ENV) + 48,
	POLITE_ROUNDS = 5,	/* in which a thread is looked for that need not be disturbed */
};

struct data {
	int pair[2];
	uint8_t swapped[8];
	uint8_t old_errno[8];
	char byte[8];
	struct iovec iov;
	struct msghdr msg;
	char env[ENV_ROOM];
	char path[PATH_ROOM];
};

_Static_assert(sizeof(struct data) <= CHAIN_DATA, "fits");

struct injection {
	struct agents *a;
	struct target *t;
	struct strbuf *why;
	struct guest g;
	struct chain c;
	uint64_t begin;
	const char *unsafe;	/* the last reason */
	pid_t stuck[THREADS_MAX];	/* seized, and not stopped yet */
	unsigned int nstuck;
	bool is_stopped;	/* by job control: its threads stay where they are */
	bool is_polite;		/* no call is made to end with EINTR */
	bool is_hasty;		/* a look or two, not some seconds */
	bool at_entry;		/* a created target: load only, the object finds its way by an environment variable */
	int fd;			/* our end */
	int err;
};

static uint64_t datum(const struct injection *j, size_t off)
{
	return j->c.data + off;
}

#define DATUM(j, field) datum(j, offsetof(struct data, field))

static void set(struct injection *j, unsigned int i, uint64_t fn, uint64_t a0, uint64_t a1, uint64_t a2)
{
	const struct remote_call call = { .fn = fn, .arg = { a0, a1, a2 } };

	chain_set(&j->c, i, &call);
}

/* swab copies two bytes the wrong way round; unlike memcpy it has one address on all processors. */
static void set_copy(struct injection *j, unsigned int i, uint64_t from, uint64_t to, unsigned int len)
{
	set(j, i, j->g.swab, from, to, len);
}

/* Have the last call put errno as it was.  Where that is unknown it stays undone. */
static void keep_errno(struct injection *j)
{
	uint8_t code[32], old[4], swapped[4];
	uint64_t at, indirect, off = 0;

	if (!j->g.errno_location || chain_read(&j->c, j->g.errno_location, code, sizeof(code)) ||
	    !arch_remote()->errno_at(code, sizeof(code), j->g.errno_location, j->c.at.tls, &at, &indirect) ||
	    (indirect && chain_read(&j->c, indirect, &off, sizeof(off))) || chain_read(&j->c, at + off, old, sizeof(old)))
		return;
	swapped[0] = old[1];
	swapped[1] = old[0];
	swapped[2] = old[3];
	swapped[3] = old[2];
	chain_put(&j->c, offsetof(struct data, old_errno), swapped, sizeof(swapped));
	set_copy(j, PUT_ERRNO, DATUM(j, old_errno), at + off, sizeof(old));
}

/* What the thread does if it hears no more of us: make the pair, close both ends. */
static void write_chain(struct injection *j)
{
	const struct remote_call pair = { .fn = j->g.syscall, .arg = {
		SYS_socketpair, AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, DATUM(j, pair) } };
	struct data d = { .pair = { -1, -1 } };

	chain_put(&j->c, 0, &d, sizeof(d));
	chain_set(&j->c, PAIR, &pair);
	set_copy(j, CLOSE_PEER, DATUM(j, pair), DATUM(j, swapped), 8);
	set_copy(j, LOAD_PATH, DATUM(j, swapped), chain_arg0(&j->c, LOAD_FD), 4);
	set_copy(j, RECEIVE, DATUM(j, swapped) + 4, chain_arg0(&j->c, CLOSE_OBJECT), 4);
	set(j, LOAD_FD, j->g.close, UINT32_MAX, 0, 0);
	set(j, CLOSE_OBJECT, j->g.close, UINT32_MAX, 0, 0);
	keep_errno(j);
}

/* Let the thread come to the end of call @i. */
static int run(struct injection *j, unsigned int i)
{
	int err = chain_run(&j->c, i, CALL_MS), pid = (int)j->t->pid;

	if (err == -ESRCH)
		return target_fail(j->why, err, "process %d has ended", pid);
	if (err == -ETIMEDOUT)
		return target_fail(j->why, err, "process %d does not come back from its dynamic loader; the agent may yet "
				   "get in, and will do nothing", pid);
	if (err)
		return target_fail(j->why, err, "loading the agent failed in process %d, which goes on without it", pid);
	return 0;
}

/* Send our file over our end of the pair. */
static int send_object(struct injection *j)
{
	union { struct cmsghdr h; char room[CMSG_SPACE(sizeof(int))]; } control = { 0 };
	struct iovec iov = { (void *)(uintptr_t)"", 1 };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof(control) };
	int fd = open(j->a->object, O_RDONLY | O_CLOEXEC), err = 0;

	if (fd < 0)
		return target_fail_errno(j->why, -errno, "dtap's agent %s", j->a->object);
	control.h.cmsg_level = SOL_SOCKET;
	control.h.cmsg_type = SCM_RIGHTS;
	control.h.cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(&control.h), &fd, sizeof(fd));
	if (sendmsg(j->fd, &msg, MSG_NOSIGNAL | MSG_DONTWAIT) != 1)
		err = target_fail_errno(j->why, -errno, "cannot hand the agent to process %d", (int)j->t->pid);
	close(fd);
	return err;
}

/* Have the thread receive the descriptor of our file: its number becomes the argument of CLOSE_OBJECT. */
static int set_receive(struct injection *j, int own)
{
	const struct arch_remote *arch = arch_remote();
	struct iovec iov = { (void *)(uintptr_t)DATUM(j, byte), 1 };
	struct msghdr msg = {
		.msg_iov = (void *)(uintptr_t)DATUM(j, iov), .msg_iovlen = 1,
		/* The header of what is received falls on what means nothing there. */
		.msg_control = (void *)(uintptr_t)(chain_arg0(&j->c, CLOSE_OBJECT) - arch->arg0_before),
		.msg_controllen = CMSG_SPACE(sizeof(int)),
	};
	int err = send_object(j);

	if (!err)
		err = chain_write(&j->c, DATUM(j, iov), &iov, sizeof(iov));
	if (!err)
		err = chain_write(&j->c, DATUM(j, msg), &msg, sizeof(msg));
	set(j, RECEIVE, j->g.recvmsg, (uint64_t)own, DATUM(j, msg), MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
	return err;
}

static int set_load(struct injection *j, unsigned int i, const char *path)
{
	enum { NOW = 2 };	/* RTLD_NOW, and RTLD_LOCAL, which is 0 */

	set(j, i, j->g.dlopen, DATUM(j, path), NOW, 0);
	return chain_write(&j->c, DATUM(j, path), path, strlen(path) + 1);
}

/* The program may have been started without the variable. */
static int set_tracer(struct injection *j)
{
	size_t name = sizeof(ABI_AGENT_ENV);
	char env[ENV_ROOM];

	memcpy(env, j->a->env, sizeof(env));
	env[name - 1] = '\0';	/* for = */
	set(j, NAME_TRACER, j->g.setenv, DATUM(j, env), DATUM(j, env) + name, 1);
	return chain_write(&j->c, DATUM(j, env), env, sizeof(env));
}

static int store(struct injection *j, unsigned int from)
{
	int err = chain_store(&j->c, from);

	return err ? target_fail_errno(j->why, err, "cannot write to process %d", (int)j->t->pid) : 0;
}

/* The thread has made the pair: take our end, and write the rest anew. */
static int take_pair(struct injection *j, int *own, bool by_path)
{
	int pair[2], err = chain_read(&j->c, DATUM(j, pair), pair, sizeof(pair));
	unsigned int i;

	if (err || pair[0] < 0)
		return target_fail(j->why, -ENOTSUP, "process %d cannot make a socket pair: it has too many files open, or "
				   "must not", (int)j->t->pid);
	j->fd = (int)syscall(SYS_pidfd_getfd, j->t->pidfd, pair[1], 0);
	if (j->fd < 0)
		return target_fail_errno(j->why, -errno, "cannot take a descriptor from process %d", (int)j->t->pid);
	*own = pair[0];
	for (i = NAME_TRACER; i <= CLOSE_OWN; i++)
		chain_set(&j->c, i, NULL);
	set(j, CLOSE_PEER, j->g.close, (uint64_t)pair[1], 0, 0);
	set(j, CLOSE_OBJECT, j->g.close, UINT32_MAX, 0, 0);
	set(j, ENTER, j->g.close, (uint64_t)pair[0], 0, 0);
	err = by_path ? set_load(j, LOAD_PATH, j->a->object) : 0;
	if (!err && j->at_entry && j->g.setenv)
		err = set_tracer(j);
	return err ? err : store(j, CLOSE_PEER);
}

/* Load the object through a descriptor.  The thread stands before RECEIVE. */
static int load_fd(struct injection *j, int own)
{
	/* This spelling is nobody else's: the loader knows the object by it from now on. */
	char path[64];
	int fd, err = set_receive(j, own);

	if (!err)
		err = store(j, RECEIVE);
	if (!err)
		err = run(j, RECEIVE);
	if (err)
		return err;
	if (chain_read(&j->c, chain_arg0(&j->c, CLOSE_OBJECT), &fd, sizeof(fd)) || fd < 0)
		return target_fail(j->why, -ENOTSUP, "process %d cannot receive the agent: it has too many files open, or must "
				   "not", (int)j->t->pid);
	set(j, CLOSE_OBJECT, j->g.close, (uint64_t)fd, 0, 0);
	snprintf(path, sizeof(path), "/proc/thread-self/fd/%d", fd);
	err = set_load(j, LOAD_FD, path);
	if (!err)
		err = store(j, LOAD_FD);
	return err ? err : run(j, LOAD_FD);
}

/* Have the object loaded: *entry becomes its entry point. */
static int load(struct injection *j, int own, bool by_path, uint64_t *entry)
{
	int err = 0;

	if (by_path)
		err = run(j, LOAD_PATH);
	if (!err && by_path)
		*entry = guest_entry(j->a, j->t);
	if (!err && !*entry) {
		err = load_fd(j, own);
		if (!err)
			*entry = guest_entry(j->a, j->t);
	}
	/* It has no room in the threads that there are for variables at a fixed place, which the agent has (TLS). */
	if (!err && !*entry && j->g.is_musl)
		err = target_fail(j->why, -ENOTSUP, "process %d runs on musl, whose dynamic loader takes dtap's agent at a "
				  "program's start alone: have dtap start it (-c)", (int)j->t->pid);
	if (!err && !*entry)
		err = target_fail(j->why, -ENOTSUP, "process %d's dynamic loader refuses dtap's agent; is /proc mounted in its "
				  "root?", (int)j->t->pid);
	return err;
}

/* Which socket is descriptor @fd of the process?  0: none. */
static uint64_t socket_of(const struct injection *j, int fd)
{
	char path[64];
	struct stat st;

	snprintf(path, sizeof(path), "/proc/%d/fd/%d", (int)j->t->pid, fd);
	return stat(path, &st) ? 0 : st.st_ino;
}

/* Call the entry point.  When the object does not take the thread's end it is to be closed. */
static int enter(struct injection *j, int own, uint64_t entry)
{
	uint64_t socket = socket_of(j, own);
	bool is_refused;
	char byte;
	int err;

	set(j, ENTER, entry, (uint64_t)own, 0, 0);
	err = store(j, ENTER);
	if (!err)
		err = run(j, ENTER);
	if (err)
		return err;
	if (socket_of(j, own) == socket) {
		set(j, CLOSE_OWN, j->g.close, (uint64_t)own, 0, 0);
		err = store(j, CLOSE_OWN);
		is_refused = !err && recv(j->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) < 0;
	} else {
		is_refused = recv(j->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 0;
	}
	if (is_refused)	/* and has not said why */
		err = target_fail(j->why, -EBUSY, "process %d takes no more tracers, or is only just starting, or "
				  "already about to end", (int)j->t->pid);
	return err;
}

/* The thread is stopped at a safe point, the chain laid out. */
static int inject(struct injection *j)
{
	bool by_path = !j->g.entry && j->g.sees_object && strlen(j->a->object) < PATH_ROOM;
	uint64_t entry = j->g.entry;
	int own = -1, err;

	write_chain(j);
	err = chain_go(&j->c);
	if (err)
		return target_fail_errno(j->why, err, "cannot write to process %d", (int)j->t->pid);
	err = run(j, PAIR);
	if (!err)
		err = take_pair(j, &own, by_path);
	if (!err && !entry)
		err = load(j, own, by_path, &entry);
	if (!err && !j->at_entry)
		err = enter(j, own, entry);
	/* After a fault, too, the thread is on its way to where it was. */
	if (err != -ESRCH && err != -ETIMEDOUT)
		chain_finish(&j->c, CALL_MS);
	return err == -ETIMEDOUT ? -EBUSY : err;
}

/* --- a thread at a safe point --------------------------------------------------------------------------- */

static void detach(pid_t tid, int status)
{
	int sig = status >> 16 || WSTOPSIG(status) == (SIGTRAP | 0x80) ? 0 : WSTOPSIG(status);

	ptrace(PTRACE_DETACH, tid, NULL, (void *)(uintptr_t)sig);
}

/* Let those go that stop only now. */
static void free_stuck(struct injection *j)
{
	unsigned int i = 0;
	int status;

	while (i < j->nstuck) {
		int err = chain_wait(j->stuck[i], 0, &status);

		if (err == -ETIMEDOUT) {
			i++;
			continue;
		}
		if (!err)
			detach(j->stuck[i], status);
		j->stuck[i] = j->stuck[--j->nstuck];
	}
}

static bool is_stuck(const struct injection *j, pid_t tid)
{
	unsigned int i;

	for (i = 0; i < j->nstuck; i++)
		if (j->stuck[i] == tid)
			return true;
	return false;
}

/* Stop thread @tid between two instructions.  Its signals are delivered first. */
static int stop(struct injection *j, pid_t tid, int *status)
{
	int err;

	if (ptrace(PTRACE_SEIZE, tid, NULL, (void *)(uintptr_t)PTRACE_O_TRACESYSGOOD))
		return -errno;
	if (ptrace(PTRACE_INTERRUPT, tid, NULL, NULL))
		return -errno;
	for (;;) {
		err = chain_wait(tid, STOP_MS, status);
		if (err == -ETIMEDOUT && j->nstuck < THREADS_MAX)
			j->stuck[j->nstuck++] = tid;
		if (err || *status >> 16 == PTRACE_EVENT_STOP)
			return err;
		ptrace(PTRACE_CONT, tid, NULL, (void *)(uintptr_t)WSTOPSIG(*status));
	}
}

/* Who traces the process or thread @pid; 0: nobody. */
static long tracer_of(pid_t pid)
{
	struct strbuf status = { 0 };
	const char *tracer = proc_read(pid, "status", &status) ? NULL : proc_status_field(status.s, "TracerPid");
	long ret = tracer ? strtol(tracer, NULL, 10) : 0;

	strbuf_fini(&status);
	return ret;
}

/* Try with thread @tid: true when it was the one, and j->err says how it went. */
static bool try_thread(struct injection *j, pid_t tid)
{
	int status, err = stop(j, tid, &status);

	if (err == -EPERM && target_poll(j->t) == TARGET_EXITED) {
		j->err = target_fail(j->why, -ESRCH, "process %d has ended", (int)j->t->pid);
		return true;
	}
	/* Another tracer that brings its agent soon lets go; who has not traced it yet may be about to. */
	if (err == -EPERM && now_ms() < j->begin + (tracer_of(tid) ? GIVE_UP_MS : REFUSED_MS)) {
		j->unsafe = "cannot be traced";
		return false;
	}
	if (err == -EPERM) {
		j->err = target_fail(j->why, err, "process %d: ptrace is not permitted (kernel.yama.ptrace_scope, a seccomp "
				     "filter or a security module forbids it, or somebody else traces it)", (int)j->t->pid);
		return true;
	}
	if (err) {
		j->unsafe = err == -ETIMEDOUT ? "waits in the kernel for something that cannot be interrupted" : j->unsafe;
		return false;
	}
	j->is_stopped = WSTOPSIG(status) != SIGTRAP;
	target_maps_fini(&j->g.maps);
	err = target_maps(j->t, &j->g.maps, NULL);
	if (!err)
		err = chain_init(&j->c, &j->g, tid, NCALLS);
	j->unsafe = err == -ENOSPC ? "is near the end of its stack" : "cannot be looked at";
	if (!err)
		j->unsafe = safepoint_refusal(&j->g, tid, &j->c.at);
	if (!err && !j->unsafe && j->is_polite && arch_remote()->is_spoilt(&j->c.at))
		j->unsafe = "waits in the kernel";
	if (!err && !j->unsafe) {
		j->err = seccomp_check(j->t->pid, tid, j->why);
		if (!j->err)
			j->err = inject(j);
	}
	detach(tid, status);	/* one that is still on its way is let go with this thread's end */
	chain_fini(&j->c);
	return !j->unsafe;
}

/* The process's threads as of now, the first one first. */
static unsigned int list_threads(const struct injection *j, pid_t *tids, unsigned int max)
{
	unsigned int n = 0;
	struct dirent *e;
	char path[32];
	DIR *d;

	snprintf(path, sizeof(path), "/proc/%d/task", (int)j->t->pid);
	d = opendir(path);
	if (!d)
		return 0;
	while (n < max && (e = readdir(d)))
		if (e->d_name[0] != '.')
			tids[n++] = (pid_t)strtol(e->d_name, NULL, 10);
	closedir(d);
	return n;
}

static void find_thread(struct injection *j)
{
	uint64_t end = (j->begin = now_ms()) + (j->is_hasty ? HASTY_MS : GIVE_UP_MS);
	struct timespec nap = { .tv_nsec = 500000 };
	pid_t tids[THREADS_MAX];
	unsigned int n, i, round = 0;

	do {
		n = list_threads(j, tids, THREADS_MAX);
		if (!n) {
			j->err = target_fail(j->why, -ESRCH, "process %d has ended", (int)j->t->pid);
			return;
		}
		j->is_polite = n > 1 && round < POLITE_ROUNDS;
		for (i = 0; i < n; i++)
			if (!is_stuck(j, tids[i]) && try_thread(j, tids[i]))
				return;
		nanosleep(&nap, NULL);
		if (nap.tv_nsec < NAP_MAX_NS)
			nap.tv_nsec += nap.tv_nsec / 8;
		round++;
		free_stuck(j);
	} while (now_ms() < end && !(j->is_stopped && round > POLITE_ROUNDS));
	if (j->is_stopped)
		j->err = target_fail(j->why, -EBUSY, "process %d is stopped where the agent cannot be loaded without danger: let it "
				     "go on (SIGCONT) and try again", (int)j->t->pid);
	else
		j->err = target_fail(j->why, -EBUSY, "process %d has no thread at a point where the agent can be loaded without danger; "
				     "the last one looked at %s", (int)j->t->pid, j->unsafe ? j->unsafe : "has ended");
}

static void *attach_main(void *arg)
{
	find_thread(arg);
	return NULL;
}

/* In a thread without signals of its own, whose end lets go of everything. */
static void attach_running(struct injection *j)
{
	sigset_t all, old;
	pthread_t thread;
	int err;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	err = pthread_create(&thread, NULL, attach_main, j);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (err)
		j->err = target_fail_errno(j->why, -err, "cannot start a thread");
	else
		pthread_join(thread, NULL);
}

/* A created target that is held at its entry point: it stays so. */
static void attach_held(struct injection *j)
{
	pid_t pid = j->t->pid;

	if (j->g.entry)
		return;
	ptrace(PTRACE_SETOPTIONS, pid, NULL, (void *)(uintptr_t)(PTRACE_O_EXITKILL | PTRACE_O_TRACESYSGOOD));
	j->err = chain_init(&j->c, &j->g, pid, NCALLS);
	if (j->err)
		target_fail_errno(j->why, j->err, "cannot load dtap's agent into process %d", (int)pid);
	else
		j->err = seccomp_check(pid, pid, j->why);
	if (!j->err)
		j->err = inject(j);
	chain_fini(&j->c);
	ptrace(PTRACE_SETOPTIONS, pid, NULL, (void *)(uintptr_t)HOLD_OPTIONS);
}

/* Is it traced already?  ptrace has room for one.  A tracer that has just ended may still have its hand on it. */
static int check_tracer(const struct target *t, bool is_hasty, struct strbuf *why)
{
	const struct timespec nap = { .tv_nsec = 20000000 };
	long pid = tracer_of(t->pid);
	int i;

	for (i = is_hasty ? 100 : 0; pid && i < 100; i++) {
		nanosleep(&nap, NULL);
		pid = tracer_of(t->pid);
	}
	if (pid)
		return target_fail(why, -EPERM, "process %d is traced by process %ld already (a debugger or strace)",
				   (int)t->pid, pid);
	return 0;
}

static int attach(struct agents *a, struct target *t, bool is_hasty, struct strbuf *why)
{
	struct injection j = { .a = a, .t = t, .why = why, .is_hasty = is_hasty, .fd = -1 };
	int err;

	if (t->state != TARGET_RUNNING && (t->state != TARGET_AT_ENTRY || t->is_moving))
		return target_fail(why, -EINVAL, "process %d is not in a state to load the agent", (int)t->pid);
	j.at_entry = t->state == TARGET_AT_ENTRY;
	err = guest_find(a, t, &j.g, why);
	if (!err && !j.at_entry)
		err = check_tracer(t, is_hasty, why);
	if (!err) {
		if (j.at_entry)
			attach_held(&j);
		else
			attach_running(&j);
		err = j.err;
	}
	guest_fini(&j.g);
	if (!err && !j.at_entry)
		return channels_add(a, j.fd, t->pid);
	if (j.fd >= 0)
		close(j.fd);
	return err;
}

int agents_attach(struct agents *a, struct target *t, struct strbuf *why)
{
	return attach(a, t, false, why);
}

int agents_try(struct agents *a, struct target *t, struct strbuf *why)
{
	return attach(a, t, true, why);
}
