#include "probe/procs.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/strbuf.h"

/* "START-END r-xp OFFSET MAJOR:MINOR INODE   PATH".  False for a mapping that is not of our kind. */
static bool parse_line(char *line, struct procs_map *m)
{
	static const char deleted[] = " (deleted)";
	unsigned int major, minor;
	char perms[5], *path;
	size_t len;
	int at = 0;

	line[strcspn(line, "\n")] = '\0';
	if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %4s %*x %x:%x %" SCNu64 " %n", &m->start, &m->end, perms, &major,
		   &minor, &m->ino, &at) != 6 || !at)
		return false;
	path = line + at;
	if (perms[2] != 'x' || !m->ino || *path != '/')
		return false;
	len = strlen(path);
	if (len > sizeof(deleted) && !strcmp(path + len + 1 - sizeof(deleted), deleted))
		path[len + 1 - sizeof(deleted)] = '\0';
	m->dev = makedev(major, minor);
	m->path = path;
	return true;
}

int procs_maps(uint32_t pid, int (*fn)(void *ctx, const struct procs_map *m), void *ctx)
{
	struct procs_map m = { .pid = pid };
	char name[32], *line = NULL;
	size_t cap = 0;
	int err = 0;
	FILE *f;

	snprintf(name, sizeof(name), "/proc/%" PRIu32 "/maps", pid);
	f = fopen(name, "re");
	if (!f)
		return errno == ENOENT ? -ESRCH : -errno;
	errno = 0;
	while (!err && getline(&line, &cap, f) >= 0)
		if (parse_line(line, &m))
			err = fn(ctx, &m);
	if (!err && ferror(f))
		err = errno ? -errno : -EIO;
	free(line);
	fclose(f);
	return err;
}

int procs_each(void (*fn)(void *ctx, uint32_t pid), void *ctx)
{
	DIR *d = opendir("/proc");
	struct dirent *e;

	if (!d)
		return -errno;
	/* procfs lists processes in the order of their pids. */
	while ((e = readdir(d))) {
		char *end;
		unsigned long pid = strtoul(e->d_name, &end, 10);

		if (end != e->d_name && !*end && pid > 0 && pid <= UINT32_MAX)
			fn(ctx, (uint32_t)pid);
	}
	closedir(d);
	return 0;
}

/* Open @path if it is the mapped file.  Some file systems show another device in stat than in maps. */
static int open_same(const struct procs_map *m, const char *path, bool same_dev)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY), err;
	struct stat st;

	if (fd < 0)
		return -errno;
	if (fstat(fd, &st))
		err = -errno;
	else if (!S_ISREG(st.st_mode) || st.st_ino != m->ino || (same_dev && st.st_dev != m->dev))
		err = -ENOENT;
	else
		return fd;
	close(fd);
	return err;
}

/*
 * In /proc/PID/maps a process that only changed its root shows paths as we see them; one in a mount
 * namespace of its own shows paths as it sees them.  map_files leads to the file in any case, but lives
 * only as long as the mapping and needs CAP_SYS_ADMIN or CAP_CHECKPOINT_RESTORE, so it comes last.
 */
int procs_open(const struct procs_map *m, struct strbuf *path)
{
	int fd = -ENOENT, err = 0;

	for (int same_dev = 1; same_dev >= 0; same_dev--) {
		strbuf_clear(path);
		strbuf_puts(path, m->path);
		fd = open_same(m, strbuf_str(path), same_dev);
		if (fd >= 0)
			return fd;
		strbuf_clear(path);
		strbuf_printf(path, "/proc/%" PRIu32 "/root%s", m->pid, m->path);
		fd = open_same(m, strbuf_str(path), same_dev);
		if (fd >= 0)
			return fd;
		if (!err || err == -ENOENT)
			err = fd;
	}
	strbuf_clear(path);
	strbuf_printf(path, "/proc/%" PRIu32 "/map_files/%" PRIx64 "-%" PRIx64, m->pid, m->start, m->end);
	fd = open(strbuf_str(path), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	return fd >= 0 ? fd : err;
}
