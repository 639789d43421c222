/*
 * Watching a process: may it be traced, and does it still run?  A pidfd answers the second question even if
 * the id has been reused; without one, the process's start time is compared.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "target/priv.h"

int target_pidfd(pid_t pid)
{
	return (int)syscall(SYS_pidfd_open, pid, 0);	/* always close-on-exec */
}

/* Is it a process that we may trace? */
static int check_process(pid_t pid, const char *status, const char *stat, struct strbuf *why)
{
	const char *tgid = proc_status_field(status, "Tgid"), *state = proc_status_field(status, "State");
	char path[64];
	int fd, err;

	if (!tgid || !state || strtol(tgid, NULL, 10) == 0)
		return target_fail(why, -ESRCH, "process %d: no such process", (int)pid);
	if (strtol(tgid, NULL, 10) != pid)
		return target_fail(why, -EINVAL, "%d is a thread of process %ld; give the process's id", (int)pid,
				   strtol(tgid, NULL, 10));
	if (proc_stat_field(stat, STAT_FLAGS) & PROCESS_KTHREAD)
		return target_fail(why, -EINVAL, "process %d is a thread of the kernel", (int)pid);
	if (*state == 'Z' || *state == 'X')
		return target_fail(why, -ESRCH, "process %d has ended already", (int)pid);
	snprintf(path, sizeof(path), "/proc/%d/maps", (int)pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);	/* the kernel checks permissions as for ptrace */
	if (fd >= 0) {
		close(fd);
		return 0;
	}
	err = -errno;
	if (err == -EACCES || err == -EPERM)
		return target_fail(why, -EPERM, "process %d: no permission to trace it (it is another user's, "
				   "or protects itself)", (int)pid);
	if (err == -ENOENT || err == -ESRCH)
		return target_fail(why, -ESRCH, "process %d: no such process", (int)pid);
	return target_fail_errno(why, err, "process %d", (int)pid);
}

int target_attach(pid_t pid, struct target **ret, struct strbuf *why)
{
	struct strbuf status = { 0 }, stat = { 0 };
	struct target *t = NULL;
	int err;

	if (pid <= 0)
		return target_fail(why, -EINVAL, "%d is no process id", (int)pid);
	if (proc_refusal())
		return target_fail(why, -ENOENT, "process %d: %s", (int)pid, proc_refusal());
	t = calloc(1, sizeof(*t));
	if (!t)
		return target_fail_errno(why, -ENOMEM, "process %d", (int)pid);
	t->pid = pid;
	t->state = TARGET_RUNNING;
	t->pidfd = target_pidfd(pid);	/* first, so that what is read next is about the pidfd's process */
	err = proc_read(pid, "status", &status);
	if (!err)
		err = proc_read(pid, "stat", &stat);
	if (err) {
		err = err == -ESRCH ? target_fail(why, err, "process %d: no such process", (int)pid)
				    : target_fail_errno(why, err, "process %d", (int)pid);
		goto out;
	}
	err = check_process(pid, status.s, stat.s, why);
	t->start_time = proc_stat_field(stat.s, STAT_START_TIME);
out:
	if (err)
		target_free(t);
	else
		*ret = t;
	strbuf_fini(&status);
	strbuf_fini(&stat);
	return err;
}

pid_t target_pid(const struct target *t)
{
	return t->pid;
}

enum target_state target_state(const struct target *t)
{
	return t->state;
}

int target_fd(const struct target *t)
{
	return t->pidfd;
}

/* Has the attached process ended?  Its id may have been reused. */
static bool has_ended(const struct target *t)
{
	struct pollfd p = { .fd = t->pidfd, .events = POLLIN };
	struct strbuf stat = { 0 };
	const char *s;
	bool ret;

	if (t->pidfd >= 0)
		return poll(&p, 1, 0) > 0;
	ret = proc_read(t->pid, "stat", &stat) != 0;
	s = strrchr(strbuf_str(&stat), ')');
	ret = ret || !s || s[1] == '\0' || s[2] == 'Z' || s[2] == 'X' ||
	      proc_stat_field(stat.s, STAT_START_TIME) != t->start_time;
	strbuf_fini(&stat);
	return ret;
}

/* From linux/pidfd.h since Linux 6.15; older kernels answer with an error, or without the status. */
struct exit_info {
	uint64_t mask, cgroupid;
	uint32_t pid, tgid, ppid, ids[8];
	int32_t exit_code;
};
_Static_assert(sizeof(struct exit_info) == 64, "the first version of the kernel's");
enum { EXIT_INFO = 1 << 3 };		/* PIDFD_INFO_EXIT */
#define GET_INFO _IOWR(0xff, 11, struct exit_info)	/* PIDFD_GET_INFO */

/*
 * Find the exit status of the attached process.  Until its parent has reaped it, the status is in field 52 of
 * /proc/PID/stat; after that the pidfd provides it.
 */
static void find_status(struct target *t)
{
	struct exit_info info = { .mask = EXIT_INFO };
	struct strbuf stat = { 0 };
	const char *s;

	if (!proc_read(t->pid, "stat", &stat)) {
		s = strrchr(stat.s, ')');
		t->has_status = s && s[1] && s[2] == 'Z' && proc_stat_field(stat.s, STAT_START_TIME) == t->start_time;
		t->status = (int)proc_stat_field(stat.s, STAT_EXIT_CODE);
	}
	strbuf_fini(&stat);
	if (t->has_status || t->pidfd < 0 || ioctl(t->pidfd, GET_INFO, &info) || !(info.mask & EXIT_INFO))
		return;
	t->has_status = true;
	t->status = info.exit_code;
}

enum target_state target_poll(struct target *t)
{
	pid_t r;

	if (t->state != TARGET_RUNNING)
		return t->state;
	if (!t->is_child) {
		if (has_ended(t)) {
			t->state = TARGET_EXITED;
			find_status(t);
		}
		return t->state;
	}
	r = waitpid(t->pid, &t->status, WNOHANG);
	if (r > 0)
		t->has_status = true;
	if (r > 0 || (r < 0 && errno == ECHILD))	/* ECHILD: SIGCHLD is ignored, so the status is lost */
		t->state = TARGET_EXITED;
	return t->state;
}

bool target_exit_status(const struct target *t, int *status)
{
	if (t->state != TARGET_EXITED || !t->has_status)
		return false;
	*status = t->status;
	return true;
}
