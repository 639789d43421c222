/*
 * Holding a target with ptrace, and moving it from one stop to the next.
 *
 * PTRACE_SEIZE is used, not PTRACE_TRACEME: so group-stops differ from signal-delivery-stops, and the target gets
 * no SIGTRAP at exec.  A stop is one of three: the one that we wait for (an exec, the entry breakpoint); one for a
 * signal, with which the thread is resumed; or a group-stop, in which the thread stays until SIGCONT.
 *
 * All threads are traced, because an exec by an untraced thread ends the tracing of its process.  The kernel reports a
 * new thread by an event.  If the creating thread is killed at that moment, the event is lost, and the kernel does not
 * report the end of the process before we have waited for the unknown thread.  So /proc/PID/task is read, too, whenever
 * nothing happens for a while.
 *
 * waitpid is called for single thread ids, never for any child: the tracer may have other children.
 */
#include <errno.h>
#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include "target/priv.h"

enum { IDLE_NS = 20 * 1000 * 1000 };

static struct target_thread *find_thread(struct target *t, pid_t tid)
{
	size_t i;

	for (i = 0; i < t->nthreads; i++)
		if (t->threads[i].tid == tid)
			return &t->threads[i];
	return NULL;
}

/* Does @tid belong to the target's process? */
static bool is_own_thread(const struct target *t, pid_t tid)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/task/%d", (int)t->pid, (int)tid);
	return access(path, F_OK) == 0;
}

static int add_thread(struct target *t, pid_t tid)
{
	size_t cap = t->threads_cap ? 2 * t->threads_cap : 4;
	struct target_thread *v;

	if (find_thread(t, tid))
		return 0;
	if (t->nthreads == t->threads_cap) {
		v = realloc(t->threads, cap * sizeof(*v));
		if (!v)
			return -ENOMEM;
		t->threads = v;
		t->threads_cap = cap;
	}
	t->threads[t->nthreads].tid = tid;
	t->threads[t->nthreads++].is_foreign = !is_own_thread(t, tid);
	return 0;
}

static void drop_thread(struct target *t, size_t i)
{
	t->nthreads--;
	memmove(&t->threads[i], &t->threads[i + 1], (t->nthreads - i) * sizeof(*t->threads));
}

/* Add the threads that no event has reported.  One that is not under ptrace is dropped when waited for. */
static int add_missing_threads(struct target *t)
{
	char path[32];
	struct dirent *e;
	int err = 0;
	DIR *d;

	snprintf(path, sizeof(path), "/proc/%d/task", (int)t->pid);
	d = opendir(path);
	if (!d)
		return 0;	/* it has ended: waitpid will report that */
	while (!err && (e = readdir(d)))
		if (e->d_name[0] != '.')
			err = add_thread(t, (pid_t)strtol(e->d_name, NULL, 10));
	closedir(d);
	return err;
}

int hold_seize(struct target *t)
{
	int err = add_thread(t, t->pid);

	if (err)
		return err;
	if (ptrace(PTRACE_SEIZE, t->pid, NULL, (void *)(uintptr_t)HOLD_OPTIONS)) {
		err = -errno;
		t->nthreads = 0;
	}
	return err;
}

static void ended(struct target *t, bool has_status, int status)
{
	t->state = TARGET_EXITED;
	t->is_moving = false;
	t->has_status = has_status;
	t->status = status;
	t->nthreads = 0;
	t->entry = 0;
}

static void held(struct target *t, enum target_state state)
{
	t->state = state;
	t->is_moving = false;
}

/*
 * Resume thread @tid from its stop.  ESRCH is no error: the thread was killed in the stop, which waitpid will report.
 * After any other failure (a security policy) it stays stopped, and waiting for it would never end.
 */
static int resume(enum __ptrace_request how, pid_t tid, int sig)
{
	return ptrace(how, tid, NULL, (void *)(uintptr_t)sig) && errno != ESRCH ? -errno : 0;
}

static bool is_job_control(int sig)
{
	return sig == SIGSTOP || sig == SIGTSTP || sig == SIGTTIN || sig == SIGTTOU;
}

/* After an exec, by whichever thread, there is one thread, whose id is the process's. */
static void at_exec(struct target *t)
{
	t->threads[0].tid = t->pid;
	t->threads[0].is_foreign = false;
	t->nthreads = 1;
	t->entry = 0;		/* the breakpoint is gone with the old memory */
	held(t, TARGET_AT_EXEC);
	preload_fit(t);
}

/* Thread @i is in the stop @status: handle it. */
static int stopped(struct target *t, size_t i, int status, struct strbuf *why)
{
	pid_t tid = t->threads[i].tid;
	int sig = WSTOPSIG(status), event = status >> 16;
	unsigned long msg;
	int err = 0, hit;

	if (t->threads[i].is_foreign) {
		resume(PTRACE_DETACH, tid, event ? 0 : sig);
		drop_thread(t, i);
		return 0;
	}
	switch (event) {
	case PTRACE_EVENT_EXEC:
		at_exec(t);
		return 0;
	case PTRACE_EVENT_CLONE:
		if (!ptrace(PTRACE_GETEVENTMSG, tid, NULL, &msg))
			err = add_thread(t, (pid_t)msg);
		sig = 0;
		break;
	case PTRACE_EVENT_STOP:
		if (is_job_control(sig)) {
			err = resume(PTRACE_LISTEN, tid, 0);
			return err ? target_fail_errno(why, err, "cannot hold process %d", (int)t->pid) : 0;
		}
		sig = 0;
		break;
	case 0:
		hit = sig == SIGTRAP && t->entry && tid == t->pid ? entry_hit(t) : 0;
		if (hit > 0) {
			held(t, TARGET_AT_ENTRY);
			return entry_undo(t, why);
		}
		err = hit == -ESRCH ? 0 : hit;
		break;
	default:
		sig = 0;
		break;
	}
	if (!err)
		err = resume(PTRACE_CONT, tid, sig);
	return err ? target_fail_errno(why, err, "cannot hold process %d", (int)t->pid) : 0;
}

/*
 * Take what the kernel reports about the threads, until the target has reached the expected stop or nothing more is
 * reported.  True: something was reported.
 */
static bool take_reports(struct target *t, int *err, struct strbuf *why)
{
	bool any = false;
	size_t i = 0;
	int status;
	pid_t tid, r;

	while (i < t->nthreads && t->is_moving && !*err) {
		tid = t->threads[i].tid;
		r = waitpid(tid, &status, WNOHANG | __WALL);
		if (r == 0 || (r < 0 && errno == EINTR)) {
			i++;
		} else if (r > 0 && WIFSTOPPED(status)) {
			any = true;
			*err = stopped(t, i, status, why);
		} else if (tid == t->pid) {
			ended(t, r > 0, r > 0 ? status : 0);	/* no status: SIGCHLD is ignored */
			return true;
		} else {
			any = any || r > 0;
			drop_thread(t, i);
		}
	}
	return any;
}

/* Wait for SIGCHLD, but not for long: another thread may get the signal. */
static void sleep_for_child(void)
{
	struct timespec idle = { .tv_nsec = IDLE_NS };
	sigset_t child;

	sigemptyset(&child);
	sigaddset(&child, SIGCHLD);
	sigtimedwait(&child, NULL, &idle);
}

static bool is_interrupted(const sigset_t *signals)
{
	sigset_t pending;
	int sig;

	sigpending(&pending);
	for (sig = 1; sig < NSIG; sig++)
		if (sig != SIGCHLD && sigismember(signals, sig) == 1 && sigismember(&pending, sig) == 1)
			return true;
	return false;
}

/* Wait until the target is no longer moving.  @signals are blocked; each of them except SIGCHLD ends the wait. */
static int wait_while_moving(struct target *t, const sigset_t *signals, struct strbuf *why)
{
	int err = 0;

	while (t->is_moving && !err) {
		if (take_reports(t, &err, why) || err)
			continue;
		if (is_interrupted(signals))
			return target_fail_errno(why, -EINTR, "waiting for process %d", (int)t->pid);
		sleep_for_child();
		err = add_missing_threads(t);
	}
	return err;
}

/* As hold_wait; not ended by signals unless @intr. */
static int block_and_wait(struct target *t, bool intr, struct strbuf *why)
{
	static const int ends[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT };
	sigset_t signals, old;
	size_t i;
	int err;

	sigemptyset(&signals);
	sigaddset(&signals, SIGCHLD);
	for (i = 0; intr && i < sizeof(ends) / sizeof(ends[0]); i++)
		sigaddset(&signals, ends[i]);
	pthread_sigmask(SIG_BLOCK, &signals, &old);
	err = wait_while_moving(t, &signals, why);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	return err;
}

int hold_wait(struct target *t, struct strbuf *why)
{
	return block_and_wait(t, true, why);
}

/* Let the held target move. */
static int move(struct target *t, struct strbuf *why)
{
	int err = resume(PTRACE_CONT, t->pid, 0);

	t->is_moving = !err;
	return err ? target_fail_errno(why, err, "cannot let process %d go on", (int)t->pid) : 0;
}

/* May it be moved?  Also true of one that is still moving after -EINTR. */
static int check_held(const struct target *t, struct strbuf *why)
{
	if (t->state == TARGET_AT_EXEC || t->state == TARGET_AT_ENTRY)
		return 0;
	return target_fail(why, -EINVAL, "process %d is not held", (int)t->pid);
}

int target_next_exec(struct target *t, struct strbuf *why)
{
	int err = check_held(t, why);

	if (err)
		return err;
	do {
		err = t->is_moving ? 0 : move(t, why);
		if (!err)
			err = hold_wait(t, why);
	} while (!err && t->state == TARGET_AT_ENTRY);	/* reached after an interrupted target_to_entry */
	return err;
}

int target_to_entry(struct target *t, struct strbuf *why)
{
	int err = check_held(t, why);

	if (!err && !t->is_moving && t->state == TARGET_AT_ENTRY)
		return 0;
	if (!err && !t->is_moving) {
		err = entry_set(t, why);
		if (!err)
			err = move(t, why);
	}
	return err ? err : hold_wait(t, why);
}

/* Detach a running thread; add one that it creates meanwhile to the list. */
static void detach_running(struct target *t, pid_t tid)
{
	unsigned long msg;
	int status;

	if (ptrace(PTRACE_INTERRUPT, tid, NULL, NULL))
		return;		/* it has ended */
	while (waitpid(tid, &status, __WALL) < 0)
		if (errno != EINTR)
			return;
	if (!WIFSTOPPED(status))
		return;
	if (status >> 16 == PTRACE_EVENT_CLONE && !ptrace(PTRACE_GETEVENTMSG, tid, NULL, &msg))
		add_thread(t, (pid_t)msg);
	resume(PTRACE_DETACH, tid, status >> 16 ? 0 : WSTOPSIG(status));
}

int target_release(struct target *t, struct strbuf *why)
{
	int err = t->state == TARGET_EXITED ? 0 : check_held(t, why);
	size_t i;

	if (err || t->state == TARGET_EXITED)
		return err;
	if (t->is_moving)
		return target_fail(why, -EBUSY, "process %d is not stopped", (int)t->pid);
	for (i = 0; i < t->nthreads; i++)
		if (t->threads[i].tid != t->pid)
			detach_running(t, t->threads[i].tid);
	if (ptrace(PTRACE_DETACH, t->pid, NULL, NULL)) {
		if (errno != ESRCH)
			return target_fail_errno(why, -errno, "cannot let process %d go on", (int)t->pid);
		t->is_moving = true;	/* killed while it was held */
		return block_and_wait(t, false, why);
	}
	t->state = TARGET_RUNNING;
	t->nthreads = 0;
	return 0;
}

void target_free(struct target *t)
{
	if (!t)
		return;
	if (t->is_child && t->pid > 0 && (t->state == TARGET_AT_EXEC || t->state == TARGET_AT_ENTRY)) {
		kill(t->pid, SIGKILL);
		t->is_moving = true;
		if (!t->nthreads)	/* never seized */
			waitpid(t->pid, NULL, 0);
		else
			block_and_wait(t, false, NULL);
	}
	if (t->pidfd >= 0)
		close(t->pidfd);
	free(t->threads);
	free(t);
}
