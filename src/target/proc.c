/*
 * Reading the files of /proc/PID, and error messages about processes.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "target/priv.h"

int target_fail(struct strbuf *why, int err, const char *fmt, ...)
{
	va_list ap;

	if (!why)
		return err;
	va_start(ap, fmt);
	strbuf_vprintf(why, fmt, ap);
	va_end(ap);
	return err;
}

int target_fail_errno(struct strbuf *why, int err, const char *fmt, ...)
{
	va_list ap;

	if (!why)
		return err;
	va_start(ap, fmt);
	strbuf_vprintf(why, fmt, ap);
	va_end(ap);
	strbuf_printf(why, ": %s", strerror(-err));
	return err;
}

int proc_read(pid_t pid, const char *file, struct strbuf *out)
{
	char path[64], buf[8192];
	ssize_t n;
	int fd, err = 0;

	snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, file);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return errno == ENOENT ? -ESRCH : -errno;
	while ((n = read(fd, buf, sizeof(buf))) != 0) {
		if (n > 0)
			strbuf_add(out, buf, (size_t)n);
		else if (errno != EINTR)
			break;
	}
	if (n < 0)
		err = -errno;
	close(fd);
	return err;
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
