/*
 * Finding a thread of a running process at a safe point, which then loads the object (inject.h).
 *
 * What is known about the process before one of its threads is stopped may be outdated: it may have executed another
 * program, or have ended and its id have been reused.  So all of it is checked again after the stop.  From then on such
 * a change is noticed, because an exec by another thread ends the stopped one.
 *
 * ptrace is tied to the tracing thread: attaching runs in a thread of its own, whose end makes the kernel detach every
 * thread that did not stop in time.
 *
 * The loader's data is torn while it loads the object, and a fork by another thread would give a child that torn data: its next
 * dlopen() would end it.  So the other threads stand still meanwhile, at safe points of their own: who is in fork() or in the
 * loader is not at one, and lets the search go on.  If that does not come about for a while (many threads, busy in the C
 * library), those that are at safe points stand still.  One in a system call that such a stop may end goes on: it would have
 * to return and fork within a millisecond.  All go on if the loader takes long, which must wait for a disk then.
 *
 * An exec waits until the other threads of the process are gone, and those under ptrace are gone only when their tracer
 * has waited for them; meanwhile PTRACE_SEIZE waits for the exec (ptrace(2), the mutex cred_guard_mutex).  To avoid a
 * deadlock of a seizing thread with another one that it has seized before, the caller's thread reaps ended threads.
 */
#include <dirent.h>
#include <errno.h>
#include <linux/kcmp.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "abi/calls.h"
#include "base/now.h"
#include "base/oom.h"
#include "base/strbuf.h"
#include "target/inject.h"
#include "target/safepoint.h"
#include "target/seccomp.h"

enum {
	GIVE_UP_MS = 5000,	/* time to find a thread at a safe point */
	HASTY_MS = 5,		/* the same if is_hasty */
	REFUSED_MS = 500,	/* time in which a refused ptrace, or an unsuitable process, is tried again */
	STARTING_MS = 2000,	/* the same while no C library is mapped yet */
	STOP_MS = 50,		/* time to wait for a thread to stop */
	NAP_MAX_NS = 2000000,
	POLITE_ROUNDS = 5,	/* rounds in which is_polite is used */
	STILL_MS = 1000,	/* time in which all other threads have to stand still */
	FORK_MS = 20,		/* time of the processor that the first thread of a fork's child needs to be through with it */
	ROUND_MS = 20,		/* time in which they have to come to that in a round, while those that have stand still */
};

static void set_seized(struct injection *j, pid_t from, pid_t to)
{
	for (unsigned int i = 0; i < sizeof(j->seized) / sizeof(j->seized[0]); i++) {
		if (__atomic_load_n(&j->seized[i], __ATOMIC_RELAXED) == from) {
			__atomic_store_n(&j->seized[i], to, __ATOMIC_RELAXED);
			return;
		}
	}
}

static void detach(struct injection *j, pid_t tid, int status)
{
	enum { ERESTART_RESTARTBLOCK = 516 };	/* include/linux/errno.h of the kernel */
	int sig = status >> 16 || WSTOPSIG(status) == (SIGTRAP | 0x80) ? 0 : WSTOPSIG(status);
	struct remote_thread at;

	if (!arch_remote()->look(tid, &at) && at.nr >= 0 && at.result == -ERESTART_RESTARTBLOCK && seccomp_kills_restart(tid))
		arch_remote()->end_call(tid);
	/* A thread that is being killed cannot be detached; reap() waits for it. */
	if (!ptrace(PTRACE_DETACH, tid, NULL, (void *)(uintptr_t)sig))
		set_seized(j, tid, 0);
}

/*
 * Called repeatedly in the caller's thread: reap the seized threads that have ended.  waitid(2) reports stops of traced
 * threads even without WSTOPPED, and those belong to the attaching thread: so peek with WNOWAIT first.
 */
static void reap(struct injection *j)
{
	for (unsigned int i = 0; i < sizeof(j->seized) / sizeof(j->seized[0]); i++) {
		pid_t tid = __atomic_load_n(&j->seized[i], __ATOMIC_RELAXED);
		siginfo_t info = { .si_code = 0 };

		if (tid && !waitid(P_PID, (id_t)tid, &info, WEXITED | WNOHANG | WNOWAIT | __WALL) && info.si_pid == tid &&
		    (info.si_code == CLD_EXITED || info.si_code == CLD_KILLED || info.si_code == CLD_DUMPED)) {
			waitid(P_PID, (id_t)tid, &info, WEXITED | WNOHANG | __WALL);
			set_seized(j, tid, 0);
		}
	}
}

/* Detach the threads that have stopped only after STOP_MS. */
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
			detach(j, j->stuck[i], status);
		else
			set_seized(j, j->stuck[i], 0);
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

/* Seize and stop thread @tid, after delivering its pending signals. */
static int stop(struct injection *j, pid_t tid, int *status)
{
	int err;

	if (ptrace(PTRACE_SEIZE, tid, NULL, (void *)(uintptr_t)PTRACE_O_TRACESYSGOOD))
		return -errno;
	set_seized(j, 0, tid);
	if (ptrace(PTRACE_INTERRUPT, tid, NULL, NULL))
		return -errno;
	for (;;) {
		err = chain_wait(tid, STOP_MS, status);
		if (err == -ETIMEDOUT && j->nstuck < INJECT_THREADS)
			j->stuck[j->nstuck++] = tid;
		else if (err)
			set_seized(j, tid, 0);
		if (err || *status >> 16 == PTRACE_EVENT_STOP)
			return err;
		ptrace(PTRACE_CONT, tid, NULL, (void *)(uintptr_t)WSTOPSIG(*status));
	}
}

/* The tracer of process or thread @pid; 0: none. */
static long tracer_of(pid_t pid)
{
	struct strbuf status = { 0 };
	const char *tracer = proc_read(pid, "status", &status) ? NULL : proc_status_field(status.s, "TracerPid");
	long ret = tracer ? strtol(tracer, NULL, 10) : 0;

	strbuf_fini(&status);
	return ret;
}

/* The process's present threads, the first one first. */
static unsigned int list_threads(const struct injection *j, pid_t *tids, unsigned int max)
{
	unsigned int n = 0;
	struct dirent *e;
	char path[32];
	DIR *d;

	snprintf(path, sizeof(path), "/proc/%d/task", (int)j->t->pid);
	d = opendir(path);
	if (!d) {
		shortage_note(-errno);
		return 0;
	}
	while (n < max && (e = readdir(d)))
		if (e->d_name[0] != '.')
			tids[n++] = (pid_t)strtol(e->d_name, NULL, 10);
	closedir(d);
	return n;
}

/* Thread @tid is stopped: what is read of it now is true until it goes on. */
static void read_status(struct injection *j, pid_t tid)
{
	strbuf_clear(&j->status);
	proc_read(tid, "status", &j->status);
}

/*
 * Thread @tid is stopped.  Does it belong to the target, and is that still the same process and program?  If not, @j->g
 * is marked stale.
 */
static bool is_as_known(struct injection *j, pid_t tid)
{
	struct target_maps now = { 0 };
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/task/%d", (int)j->t->pid, (int)tid);
	j->is_stale = target_poll(j->t) == TARGET_EXITED || access(path, F_OK) || target_maps(j->t, &now, NULL) ||
		      !guest_holds(j->a, j->t, &j->g, &now, strbuf_str(&j->status));
	target_maps_fini(&now);
	return !j->is_stale;
}

static bool is_held(const struct injection *j, pid_t tid)
{
	for (unsigned int i = 0; i < j->nheld; i++)
		if (j->held[i].tid == tid)
			return true;
	return false;
}

void seek_release(struct injection *j)
{
	while (j->nheld) {
		j->nheld--;
		detach(j, j->held[j->nheld].tid, j->held[j->nheld].status);
	}
}

/* The loader takes long, maybe because of a disk: the program's other threads are not to wait for that. */
static void release_late(void *ctx)
{
	seek_release(ctx);
}

/*
 * Is the thread in a system call that does not go on after a stop, or not if the socket has a timeout?  signal(7), "Interruption of
 * system calls and library functions by stop signals"; sock_intr_errno() in the kernel's include/net/sock.h.
 */
static bool may_end(const struct injection *j, pid_t tid)
{
	static const int nrs[] = {
#ifdef SYS_epoll_wait
		SYS_epoll_wait,
#endif
		SYS_epoll_pwait, SYS_epoll_pwait2, SYS_semop, SYS_semtimedop, SYS_io_getevents, SYS_io_pgetevents, SYS_io_uring_enter,
		SYS_rt_sigtimedwait, SYS_msgrcv, SYS_msgsnd, SYS_read, SYS_readv, SYS_write, SYS_writev, SYS_recvfrom, SYS_recvmsg, SYS_recvmmsg,
		SYS_sendto, SYS_sendmsg, SYS_sendmmsg, SYS_sendfile, SYS_splice, SYS_accept, SYS_accept4, SYS_connect,
	};
	struct strbuf text = { 0 };
	char name[48], *end;
	bool ret = false;

	snprintf(name, sizeof(name), "task/%d/syscall", (int)tid);
	if (!proc_read(j->t->pid, name, &text)) {
		long nr = strtol(text.s, &end, 10);	/* or "running" */

		for (size_t i = 0; i < sizeof(nrs) / sizeof(nrs[0]); i++)
			ret |= end != text.s && nr == nrs[i];
	}
	strbuf_fini(&text);
	return ret;
}

/*
 * Hold thread @tid at a safe point; it is let go on until it is at one, or until @end.  NULL, also if it has ended; or why not.
 * Threads that stand still are at safe points, and have no lock that it needs to get to one.
 */
static const char *hold(struct injection *j, pid_t tid, uint64_t end)
{
	const struct timespec nap = { .tv_nsec = 20000 };
	struct remote_thread at;
	const char *refusal;
	int status, err;

	for (;;) {
		err = is_stuck(j, tid) ? -ETIMEDOUT : stop(j, tid, &status);
		if (err == -ESRCH && !j->is_stopped)
			return NULL;
		if (err)
			return "is not alone: another one cannot be stopped";
		refusal = arch_remote()->look(tid, &at) ? "is not alone: another one cannot be looked at" : safepoint_refusal(&j->g, tid, &at);
		if (!refusal) {
			j->held[j->nheld].tid = tid;
			j->held[j->nheld++].status = status;
			return NULL;
		}
		detach(j, tid, status);
		if (j->is_stopped || now_ms() >= end)
			return refusal;
		nanosleep(&nap, NULL);
	}
}

/*
 * Stop the threads other than @tid.  If @all must stand at safe points: NULL, or why not, with none stopped.  That is so where
 * the process is stopped by job control, too: they cannot release a lock that @tid may need.
 */
static const char *hold_others(struct injection *j, pid_t tid, bool all)
{
	pid_t tids[INJECT_HELD];
	unsigned int n = list_threads(j, tids, INJECT_HELD);
	uint64_t end = now_ms() + (j->is_hasty ? 0 : ROUND_MS);
	const char *refusal = NULL;

	for (unsigned int i = 0; i < n && !(refusal && all); i++)
		if (tids[i] != tid && (j->is_stopped || !may_end(j, tids[i])))
			refusal = hold(j, tids[i], end);
	if (refusal && all)
		seek_release(j);
	return all ? refusal : NULL;
}

/* Seccomp mode and number of filters combined in one number; 0: none. */
static long filters_in(const char *status)
{
	const char *mode = proc_status_field(status, "Seccomp"), *n = proc_status_field(status, "Seccomp_filters");

	return (mode ? strtol(mode, NULL, 10) : 0) + (n ? strtol(n, NULL, 10) * 4 : 0);
}

/*
 * Check the filters of all threads: of thread @tid, from which the agent's thread inherits them, and of the others, in
 * which events occur.  A thread with as many filters as @tid is assumed to have the same ones.
 */
static int check_calls(struct injection *j, pid_t tid)
{
	const char *text = strbuf_str(&j->status);
	int err = seccomp_check(j->t->pid, tid, text, j->g.is_musl, &j->forbidden, j->why), status;
	long own = filters_in(text), filters;
	struct strbuf theirs = { 0 };
	struct dirent *e;
	char path[32];
	DIR *d;

	snprintf(path, sizeof(path), "/proc/%d/task", (int)j->t->pid);
	d = opendir(path);
	while (!err && d && (e = readdir(d))) {
		pid_t other = (pid_t)strtol(e->d_name, NULL, 10);

		strbuf_clear(&theirs);
		if (other <= 0 || other == tid || proc_read(other, "status", &theirs))
			continue;
		filters = filters_in(strbuf_str(&theirs));
		if (filters == own || !filters)
			continue;
		if (is_held(j, other)) {
			err = seccomp_check(j->t->pid, other, strbuf_str(&theirs), j->g.is_musl, &j->forbidden, j->why);
		} else if (is_stuck(j, other) || stop(j, other, &status)) {
			err = target_fail(j->why, -EBUSY, "process %d has a thread with limits to its system calls (seccomp) that "
					  "cannot be looked at", (int)j->t->pid);
		} else {
			err = seccomp_check(j->t->pid, other, strbuf_str(&theirs), j->g.is_musl, &j->forbidden, j->why);
			detach(j, other, status);
		}
	}
	if (d)
		closedir(d);
	strbuf_fini(&theirs);
	return err;
}

/*
 * May the process be amid the fork that it comes from?  In the child the interpreter makes its locks and its threads' states anew,
 * and who waits for one of them then brings it down (PyOS_AfterFork_Child() of CPython's Modules/posixmodule.c).  It does not
 * sleep meanwhile, and takes some 0.1 ms of the processor.
 */
static bool may_be_in_fork(const struct injection *j, pid_t tid)
{
	char name[32];
	struct strbuf stat = { 0 };
	uint64_t ticks = 0, flags = 0;

	if (tid == j->t->pid && safepoint_is_waiting(&j->c.at))
		return false;
	snprintf(name, sizeof(name), "task/%d/stat", (int)j->t->pid);
	if (!proc_read(j->t->pid, name, &stat)) {
		flags = proc_stat_field(strbuf_str(&stat), STAT_FLAGS);
		ticks = proc_stat_cpu_time(strbuf_str(&stat));
	}
	strbuf_fini(&stat);
	return (flags & (PROCESS_FORKED | PROCESS_EXITING)) == PROCESS_FORKED && ticks * 1000 / (uint64_t)sysconf(_SC_CLK_TCK) < FORK_MS;
}

/* Try thread @tid.  True: it was used, or trying others is no use; j->err is the result. */
static bool try_thread(struct injection *j, pid_t tid)
{
	int status, err = stop(j, tid, &status);

	if (err == -EPERM && target_poll(j->t) == TARGET_EXITED) {
		j->err = target_fail(j->why, -ESRCH, "process %d has ended", (int)j->t->pid);
		return true;
	}
	/* Try again: another dtap may be loading its agent and detaches soon; or TracerPid may not be set yet. */
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
	read_status(j, tid);
	if (!is_as_known(j, tid)) {
		j->unsafe = "has just changed";
	} else {
		err = chain_init(&j->c, &j->g, tid, INJECT_CALLS);
		j->unsafe = err == -ENOSPC ? "is near the end of its stack" : "cannot be looked at";
	}
	if (!j->is_stale && !err)
		j->unsafe = safepoint_refusal(&j->g, tid, &j->c.at);
	if (!j->unsafe && may_be_in_fork(j, tid))
		j->unsafe = "may not be through with the fork that the process comes from";
	if (!j->unsafe && j->is_polite && arch_remote()->ends_call(&j->c.at))
		j->unsafe = "waits in the kernel";
	if (!j->unsafe && (j->is_stopped || !j->g.entry))
		j->unsafe = hold_others(j, tid, j->is_stopped || now_ms() < j->begin + (j->is_hasty ? HASTY_MS / 2 : STILL_MS));
	if (!j->unsafe) {
		permit_learn(&j->a->permits, j->t->pid, tid, strbuf_str(&j->status));
		j->err = check_calls(j, tid);
		j->may_mark = !j->err && chain_may_mark(&j->c, strbuf_str(&j->status));
		j->c.late = release_late;
		j->c.late_ctx = j;
		if (!j->err)
			j->err = inject(j);
	}
	seek_release(j);
	detach(j, tid, status);	/* if it is still running, it is detached by the end of this thread */
	chain_fini(&j->c);
	return !j->unsafe;
}

/*
 * Another process that shares this one's memory.  0: none, or not known (that takes CONFIG_KCMP, and
 * permission to trace the other process).
 */
static pid_t shares_memory(const struct injection *j)
{
	struct dirent *e;
	pid_t ret = 0;
	DIR *d = opendir("/proc");

	while (d && !ret && (e = readdir(d))) {
		pid_t pid = (pid_t)strtol(e->d_name, NULL, 10);

		if (pid > 0 && pid != j->t->pid && !syscall(SYS_kcmp, (long)j->t->pid, (long)pid, (long)KCMP_VM, 0L, 0L))
			ret = pid;
	}
	if (d)
		closedir(d);
	return ret;
}

/* The process has changed: examine it anew.  It may be starting only just now, so try for a while before giving up. */
static void find_anew(struct injection *j)
{
	struct strbuf why = { 0 };
	uint64_t ms;
	int err;

	guest_fini(&j->g);
	err = target_poll(j->t) == TARGET_EXITED ? -ESRCH : guest_find(j->a, j->t, &j->g, &why);
	ms = guest_is_starting(&j->g) ? STARTING_MS : REFUSED_MS;
	if (err == -ESRCH)
		j->err = target_fail(j->why, err, "process %d has ended", (int)j->t->pid);
	else if (err && (j->is_hasty || now_ms() > j->begin + ms))
		j->err = target_fail(j->why, err, "%s", strbuf_str(&why));
	j->is_stale = err;
	strbuf_fini(&why);
}

/* Try each thread once.  True: j->err is the result. */
static bool try_all(struct injection *j, bool may_be_polite)
{
	pid_t tids[INJECT_THREADS];
	unsigned int n = list_threads(j, tids, INJECT_THREADS);

	if (!n) {
		j->err = target_fail(j->why, -ESRCH, "process %d has ended", (int)j->t->pid);
		return true;
	}
	j->is_polite = n > 1 && may_be_polite;
	for (unsigned int i = 0; i < n && !j->is_stale; i++)
		if (!is_stuck(j, tids[i]) && try_thread(j, tids[i]))
			return true;
	return false;
}

static void find_thread(struct injection *j)
{
	uint64_t end = (j->begin = now_ms()) + (j->is_hasty ? HASTY_MS : GIVE_UP_MS);
	struct timespec nap = { .tv_nsec = 500000 };
	unsigned int round = 0;
	pid_t sharer;

	do {
		if (j->is_stale)
			find_anew(j);
		sharer = shares_memory(j);
		/* An exiting process has no memory, so it compares equal to kernel threads and other exiting ones. */
		if (sharer && target_poll(j->t) == TARGET_EXITED)
			j->err = target_fail(j->why, -ESRCH, "process %d has ended", (int)j->t->pid);
		if (j->err || (!sharer && !j->is_stale && try_all(j, round < POLITE_ROUNDS)))
			return;
		if (agents_interrupted(j->a)) {
			j->err = target_fail_errno(j->why, -EINTR, "waiting for process %d", (int)j->t->pid);
			return;
		}
		nanosleep(&nap, NULL);
		if (nap.tv_nsec < NAP_MAX_NS)
			nap.tv_nsec += nap.tv_nsec / 8;
		round++;
		free_stuck(j);
	} while (now_ms() < end && !(j->is_stopped && round > POLITE_ROUNDS));
	if (sharer)
		j->err = target_fail(j->why, -EBUSY, "process %d shares its memory with process %d (vfork, or clone with CLONE_VM): "
				     "an agent would be in both", (int)j->t->pid, (int)sharer);
	else if (j->is_stopped)
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

/* Search in a new thread, with all signals blocked, whose end detaches everything. */
static void attach_running(struct injection *j)
{
	enum { REAP_NS = 2000000 };
	sigset_t all, old, here;
	pthread_t thread;
	struct timespec until;
	int err;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	err = pthread_create(&thread, NULL, attach_main, j);
	here = old;
	sigaddset(&here, SIGCHLD);	/* each stop sends one, for which this thread need not wake up */
	pthread_sigmask(SIG_SETMASK, &here, NULL);
	if (err) {
		pthread_sigmask(SIG_SETMASK, &old, NULL);
		j->err = target_fail_errno(j->why, -err, "cannot start a thread");
		return;
	}
	do {
		reap(j);
		clock_gettime(CLOCK_REALTIME, &until);
		until.tv_nsec += REAP_NS;
		until.tv_sec += until.tv_nsec / 1000000000;
		until.tv_nsec %= 1000000000;
	} while (pthread_timedjoin_np(thread, NULL, &until));
	pthread_sigmask(SIG_SETMASK, &old, NULL);
}

/* A created target that is held at its entry point: it stays held. */
static void attach_held(struct injection *j)
{
	pid_t pid = j->t->pid;

	if (j->g.entry)
		return;
	ptrace(PTRACE_SETOPTIONS, pid, NULL, (void *)(uintptr_t)(PTRACE_O_EXITKILL | PTRACE_O_TRACESYSGOOD));
	j->err = chain_init(&j->c, &j->g, pid, INJECT_CALLS);
	read_status(j, pid);
	if (j->err)
		target_fail_errno(j->why, j->err, "cannot load dtap's agent into process %d", (int)pid);
	else
		j->err = seccomp_check(pid, pid, strbuf_str(&j->status), j->g.is_musl, &j->forbidden, j->why);
	if (!j->err && j->forbidden & ~(uint32_t)ABI_CALLS_MEMORY)	/* this one is sent with the segment */
		j->err = target_fail(j->why, -EPERM, "process %d has limited its system calls (seccomp) so that dtap's agent cannot "
				     "come along with it: attach to it when it runs (-p)", (int)pid);
	permit_learn(&j->a->permits, pid, pid, strbuf_str(&j->status));
	j->may_mark = !j->err && chain_may_mark(&j->c, strbuf_str(&j->status));
	if (!j->err)
		j->err = inject(j);
	chain_fini(&j->c);
	ptrace(PTRACE_SETOPTIONS, pid, NULL, (void *)(uintptr_t)HOLD_OPTIONS);
}

/* Is the target traced already, by @pid?  It can have one tracer only.  One that has just ended may not be detached yet. */
static int check_tracer(const struct target *t, long pid, bool is_hasty, struct strbuf *why)
{
	const struct timespec nap = { .tv_nsec = 20000000 };
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

/*
 * Runs of several threads may come to a process at the same time, which can have one tracer only: they come one after the
 * other.  It is state of the whole program because the kernel's is; @claims: processes that some thread is attaching to.
 */
enum { CLAIMS = 64 };
static pthread_mutex_t claims_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t claims_changed = PTHREAD_COND_INITIALIZER;
static pid_t claims[CLAIMS];

/* Where @pid is in the table; 0: where there is room.  NULL: nowhere. */
static pid_t *find_claim(pid_t pid)
{
	for (int i = 0; i < CLAIMS; i++)
		if (claims[i] == pid)
			return &claims[i];
	return NULL;
}

static void claim(pid_t pid)
{
	pthread_mutex_lock(&claims_lock);
	while (find_claim(pid) || !find_claim(0))
		pthread_cond_wait(&claims_changed, &claims_lock);
	*find_claim(0) = pid;
	pthread_mutex_unlock(&claims_lock);
}

static void release_claim(pid_t pid)
{
	pthread_mutex_lock(&claims_lock);
	*find_claim(pid) = 0;
	pthread_cond_broadcast(&claims_changed);
	pthread_mutex_unlock(&claims_lock);
}

static int attach(struct agents *a, struct target *t, bool is_hasty, struct strbuf *why)
{
	struct injection j = { .a = a, .t = t, .why = why, .is_hasty = is_hasty, .fd = -1 };
	int err;

	if (t->state != TARGET_RUNNING && (t->state != TARGET_AT_ENTRY || t->is_moving))
		return target_fail(why, -EINVAL, "process %d is not in a state to load the agent", (int)t->pid);
	j.at_entry = t->state == TARGET_AT_ENTRY;
	err = guest_find(a, t, &j.g, why);
	if (err && !j.at_entry && !is_hasty && guest_is_starting(&j.g)) {
		strbuf_clear(why);
		j.is_stale = true;
		err = 0;
	}
	if (!err && !j.at_entry)
		err = check_tracer(t, j.g.tracer, is_hasty, why);
	if (!err) {
		if (j.at_entry)
			attach_held(&j);
		else
			attach_running(&j);
		err = j.err;
	}
	guest_fini(&j.g);
	strbuf_fini(&j.status);
	if (!err && !j.at_entry) {
		err = channels_add(a, j.fd, t);
		if (err == -ESRCH)
			target_fail(why, err, "process %d has ended", (int)t->pid);
		else if (err)
			target_fail_errno(why, err, "the agent in process %d", (int)t->pid);
		return err;
	}
	if (j.fd >= 0)
		close(j.fd);
	return err;
}

int agents_attach(struct agents *a, struct target *t, struct strbuf *why)
{
	int err;

	claim(t->pid);
	err = attach(a, t, false, why);
	release_claim(t->pid);
	return err;
}

int agents_try(struct agents *a, struct target *t, struct strbuf *why)
{
	int err;

	claim(t->pid);
	err = attach(a, t, true, why);
	release_claim(t->pid);
	return err;
}
