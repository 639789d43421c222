/*
 * Watching a process: may it be traced, and does it still run?  A pidfd answers the second question without
 * the danger that the id stands for another process by now; without one, the time of its start tells.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "target/priv.h"

enum { STAT_FLAGS = 9, STAT_START_TIME = 22, FLAG_KTHREAD = 0x00200000 };

int target_pidfd(pid_t pid)
{
	return (int)syscall(SYS_pidfd_open, pid, 0);	/* close-on-exec by its nature */
}

/* Is it a process that can be traced, by us? */
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
	if (proc_stat_field(stat, STAT_FLAGS) & FLAG_KTHREAD)
		return target_fail(why, -EINVAL, "process %d is a thread of the kernel", (int)pid);
	if (*state == 'Z' || *state == 'X')
		return target_fail(why, -ESRCH, "process %d has ended already", (int)pid);
	snprintf(path, sizeof(path), "/proc/%d/maps", (int)pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);	/* asks for the right to look into it, as ptrace does */
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
	t = calloc(1, sizeof(*t));
	if (!t)
		return target_fail_errno(why, -ENOMEM, "process %d", (int)pid);
	t->pid = pid;
	t->state = TARGET_RUNNING;
	t->pidfd = target_pidfd(pid);	/* first: what is read next is then of the process that it stands for */
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

/* Has the process that was attached to ended?  Its id may stand for another one by now. */
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

enum target_state target_poll(struct target *t)
{
	pid_t r;

	if (t->state != TARGET_RUNNING)
		return t->state;
	if (!t->is_child) {
		if (has_ended(t))
			t->state = TARGET_EXITED;
		return t->state;
	}
	r = waitpid(t->pid, &t->status, WNOHANG);
	if (r > 0)
		t->has_status = true;
	if (r > 0 || (r < 0 && errno == ECHILD))	/* SIGCHLD is ignored: nobody keeps the status */
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
