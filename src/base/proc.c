#include "base/proc.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/oom.h"

/* Append the content of @fd, which is closed. */
static int read_all(int fd, size_t max, struct strbuf *out)
{
	char buf[8192];
	size_t left = max;
	ssize_t n = 0;
	int err = 0;

	while (left && (n = read(fd, buf, left < sizeof(buf) ? left : sizeof(buf))) != 0) {
		if (n > 0) {
			strbuf_add(out, buf, (size_t)n);
			left -= (size_t)n;
		} else if (errno != EINTR) {
			err = shortage_note(-errno);
			break;
		}
	}
	close(fd);
	return err;
}

int proc_read(pid_t pid, const char *file, struct strbuf *out)
{
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, file);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return errno == ENOENT ? -ESRCH : shortage_note(-errno);
	return read_all(fd, SIZE_MAX, out);
}

int proc_open(pid_t pid)
{
	char path[32];
	int fd;

	snprintf(path, sizeof(path), "/proc/%d", (int)pid);
	fd = open(path, O_DIRECTORY | O_PATH | O_CLOEXEC);
	return fd >= 0 ? fd : errno == ENOENT ? -ESRCH : shortage_note(-errno);
}

int proc_read_at(int proc, const char *file, size_t max, struct strbuf *out)
{
	int fd = openat(proc, file, O_RDONLY | O_CLOEXEC);

	return fd < 0 ? shortage_note(-errno) : read_all(fd, max, out);
}

const char *proc_status_field(const char *status, const char *name)
{
	size_t len = strlen(name);

	for (; status; status = strchr(status, '\n')) {
		status += *status == '\n';
		if (!strncmp(status, name, len) && status[len] == ':')
			return status + len + 1 + strspn(status + len + 1, " \t");
	}
	return NULL;
}

long proc_innermost_id(const char *status, const char *name, size_t *depth)
{
	const char *number = proc_status_field(status, name);
	size_t n = 0;
	long ret = 0;

	for (char *end; number && *number != '\n'; number = end, n++) {
		long id = strtol(number, &end, 10);

		if (end == number)
			break;
		ret = id;
	}
	if (depth)
		*depth = n;
	return ret;
}

const char *proc_stat_at(const char *stat, int nr)
{
	const char *s = strrchr(stat, ')');

	for (int i = 2; s && i < nr; i++)
		s = strchr(s + 1, ' ');
	return s ? s + 1 : NULL;
}

uint64_t proc_stat_field(const char *stat, int nr)
{
	const char *s = proc_stat_at(stat, nr);

	return s ? strtoull(s, NULL, 10) : 0;
}

uint64_t proc_stat_cpu_time(const char *stat)
{
	return proc_stat_field(stat, STAT_USER_TIME) + proc_stat_field(stat, STAT_SYSTEM_TIME);
}

const char *proc_refusal(void)
{
	char own[16];
	ssize_t n = readlink("/proc/self", own, sizeof(own) - 1);

	if (n < 0)
		return "/proc, which tells the process's state, is not mounted";
	own[n] = '\0';
	return strtol(own, NULL, 10) == getpid() ? NULL :
	       "/proc is that of another pid namespace, where pids mean other processes: mount -t proc proc /proc";
}

bool proc_is_limited(pid_t pid)
{
	struct rlimit limit;

	return !prlimit(pid, RLIMIT_AS, NULL, &limit) && limit.rlim_cur != RLIM_INFINITY;
}
