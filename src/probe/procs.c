#include "probe/procs.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <time.h>
#include <unistd.h>

#include "abi/unwind.h"
#include "base/strbuf.h"
#include "target/maps.h"

int procs_maps(uint32_t pid, int (*fn)(void *ctx, const struct procs_map *m), void *ctx)
{
	struct target_maps maps;
	size_t i;
	int err = maps_read(pid, &maps);

	if (err)
		return err;
	for (i = 0; i < maps.n && !err; i++) {
		const struct target_map *m = &maps.v[i];
		const struct procs_map map = {
			.pid = pid, .start = m->start, .end = m->end, .off = m->off, .dev = m->dev, .ino = m->ino, .path = m->path,
		};

		if (m->is_exec && m->ino && *m->path == '/')
			err = fn(ctx, &map);
	}
	target_maps_fini(&maps);
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

struct identity {
	uint64_t start, *dev, *ino;
};

static int is_it(void *ctx, const struct procs_map *m)
{
	const struct identity *id = ctx;

	if (m->start != id->start)
		return 0;
	*id->dev = m->dev;
	*id->ino = m->ino;
	return 1;
}

/* The number behind @field ("ino:") in the file @path, or false. */
static bool field_of(const char *path, const char *field, uint64_t *value)
{
	FILE *f = fopen(path, "re");
	size_t len = strlen(field);
	bool found = false;
	char line[256];

	while (f && !found && fgets(line, sizeof(line), f))
		found = !strncmp(line, field, len) && sscanf(line + len, "%" SCNu64, value) == 1;
	if (f)
		fclose(f);
	return found;
}

/* The device of the mount number @id, which is seen from here: proc_pid_mountinfo(5). */
static bool device_of(uint64_t id, uint64_t *dev)
{
	FILE *f = fopen("/proc/self/mountinfo", "re");
	unsigned int major, minor;
	char *line = NULL;
	size_t cap = 0;
	bool found = false;
	uint64_t n;

	while (f && !found && getline(&line, &cap, f) > 0)
		found = sscanf(line, "%" SCNu64 " %*u %u:%u", &n, &major, &minor) == 3 && n == id;
	free(line);
	if (f)
		fclose(f);
	if (found)
		*dev = makedev(major, minor);
	return found;
}

/* The open file as the kernel has it (proc_pid_fdinfo(5), Linux 5.14). */
static bool identify_open(int fd, uint64_t *dev, uint64_t *ino)
{
	char path[64];
	uint64_t mount;

	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", fd);
	return field_of(path, "ino:", ino) && field_of(path, "mnt_id:", &mount) && device_of(mount, dev);
}

/* Ask for our own mapping of it. */
static int identify_mapping(int fd, uint64_t *dev, uint64_t *ino)
{
	struct identity id = { 0, dev, ino };
	void *map = mmap(NULL, 1, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);
	int err;

	if (map == MAP_FAILED)
		return -errno;
	id.start = (uintptr_t)map;
	err = procs_maps((uint32_t)getpid(), is_it, &id);
	munmap(map, 1);
	return err > 0 ? 0 : err ? err : -ENOENT;
}

/* For reading, whatever it is: a FIFO is not waited for, a terminal does not become ours. */
static int open_file(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);

	return fd < 0 ? -errno : fd;
}

int procs_identify_mapped(const char *path, uint64_t *dev, uint64_t *ino)
{
	int fd = open_file(path), err;

	if (fd < 0)
		return fd;
	err = identify_mapping(fd, dev, ino);
	close(fd);
	return err;
}

int procs_identify(const char *path, uint64_t *dev, uint64_t *ino)
{
	int fd = open_file(path), err;

	if (fd < 0)
		return fd;
	err = identify_open(fd, dev, ino) ? 0 : identify_mapping(fd, dev, ino);
	close(fd);
	return err;
}

/* Field @n, from 3 on, of @pid's stat (proc_pid_stat(5)), a number; false if there is no such process. */
static bool stat_field(uint32_t pid, int n, uint64_t *value)
{
	char path[32], text[1024], *s;
	ssize_t len;
	int fd, i;

	snprintf(path, sizeof(path), "/proc/%" PRIu32 "/stat", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	len = read(fd, text, sizeof(text) - 1);
	close(fd);
	text[len < 0 ? 0 : len] = '\0';
	s = strrchr(text, ')');
	for (i = 2; s && i < n; i++)
		s = strchr(s + 1, ' ');
	if (s)
		*value = strtoull(s, NULL, 10);
	return s;
}

uint64_t procs_age_ms(uint32_t pid)
{
	enum { START = 22 };	/* in clock ticks since the machine's start */
	uint64_t now, start;
	struct timespec t;

	if (!stat_field(pid, START, &start))
		return UINT64_MAX;
	start = start * 1000 / (uint64_t)sysconf(_SC_CLK_TCK);
	clock_gettime(CLOCK_BOOTTIME, &t);
	now = (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
	return now > start ? now - start : 0;
}

bool procs_descends(uint32_t pid, uint32_t ancestor)
{
	enum { PARENT = 4 };
	uint64_t at = pid;

	while (at && at != ancestor)
		if (!stat_field((uint32_t)at, PARENT, &at))
			return false;
	return at;
}

/* Open @path if it is the mapped file.  Some file systems show another device in stat than in maps. */
static int open_same(const struct procs_map *m, const char *path, bool same_dev)
{
	int fd = open_file(path), err;
	struct stat st;

	if (fd < 0)
		return fd;
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
	fd = open_file(strbuf_str(path));
	return fd >= 0 ? fd : err;
}

/* What is behind the command's name in /proc/PID/stat; the name may have anything in it, a parenthesis ends it. */
static const char *read_stat(uint32_t pid, char *text, size_t size)
{
	char path[64], *end;
	size_t n;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%" PRIu32 "/stat", pid);
	f = fopen(path, "re");
	if (!f)
		return NULL;
	n = fread(text, 1, size - 1, f);
	fclose(f);
	text[n] = '\0';
	end = strrchr(text, ')');
	return end ? end + 1 : NULL;
}

uint32_t procs_parent(uint32_t pid)
{
	char text[2048];
	const char *stat = read_stat(pid, text, sizeof(text));
	uint32_t parent;

	return stat && sscanf(stat, " %*c %" SCNu32, &parent) == 1 ? parent : 0;
}

int procs_key(uint32_t pid, struct abi_process_key *ret)
{
	char text[2048];
	const char *stat = read_stat(pid, text, sizeof(text));

	if (!stat)
		return -ESRCH;
	/* Fields 26 and 28 (proc_pid_stat(5)). */
	return sscanf(stat, " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d %*d %*u %*u"
			    " %*d %*u %" SCNu64 " %*u %" SCNu64, &ret->start_code, &ret->start_stack) == 2 ? 0 : -EBADMSG;
}
