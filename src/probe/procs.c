#include "probe/procs.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>
#include <time.h>
#include <unistd.h>

#include "abi/unwind.h"
#include "base/file.h"
#include "base/proc.h"
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

/* The number after @field ("ino:") in the file @path.  False: it cannot be read. */
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

/* The device of mount number @id in this mount namespace: proc_pid_mountinfo(5). */
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

/* The kernel's device and inode of an open file (proc_pid_fdinfo(5), Linux 5.14). */
static bool identify_open(int fd, uint64_t *dev, uint64_t *ino)
{
	char path[64];
	uint64_t mount;

	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", fd);
	return field_of(path, "ino:", ino) && field_of(path, "mnt_id:", &mount) && device_of(mount, dev);
}

int procs_identify(const struct file *f, uint64_t *dev, uint64_t *ino)
{
	return identify_open(f->fd, dev, ino) ? 0 : maps_identify(f, dev, ino);
}

/* Field @n, from 3 on, of @pid's stat (proc_pid_stat(5)).  False: there is no such process. */
static bool stat_field(uint32_t pid, int n, uint64_t *value)
{
	struct strbuf text = { 0 };
	const char *s = proc_read((pid_t)pid, "stat", &text) ? NULL : proc_stat_at(strbuf_str(&text), n);

	if (s)
		*value = strtoull(s, NULL, 10);
	strbuf_fini(&text);
	return s;
}

uint64_t procs_age_ms(uint32_t pid)
{
	uint64_t now, start;
	struct timespec t;

	if (!stat_field(pid, STAT_START_TIME, &start))
		return UINT64_MAX;
	start = start * 1000 / (uint64_t)sysconf(_SC_CLK_TCK);
	clock_gettime(CLOCK_BOOTTIME, &t);
	now = (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
	return now > start ? now - start : 0;
}

/*
 * proc_pid_stat(5), field 3; '\0': there is no such process.  One that has given its memory back and is not yet a zombie
 * (PF_EXITING in field 9) has ended: nothing can be told of it any more.
 */
static char state_of(uint32_t pid)
{
	struct strbuf text = { 0 };
	const char *at = proc_read((pid_t)pid, "stat", &text) ? NULL : proc_stat_at(strbuf_str(&text), STAT_STATE);
	const char *flags = at ? proc_stat_at(strbuf_str(&text), STAT_FLAGS) : NULL;
	char state = flags && strtoul(flags, NULL, 10) & PROCESS_EXITING ? 'X' : at ? *at : '\0';

	strbuf_fini(&text);
	return state;
}

bool procs_is_alive(uint32_t pid)
{
	char state = state_of(pid);

	return state && !strchr("ZX", state);
}

bool procs_is_starting(uint32_t pid)
{
	enum { STARTING_MS = 500 };
	char state = state_of(pid);

	return state && !strchr("tTZX", state) && procs_age_ms(pid) < STARTING_MS;
}

bool procs_descends(uint32_t pid, uint32_t ancestor)
{
	uint64_t at = pid;

	while (at && at != ancestor)
		if (!stat_field((uint32_t)at, STAT_PARENT, &at))
			return false;
	return at;
}

int procs_user(uint32_t pid, uid_t *user)
{
	char path[64];
	uint64_t uid;

	snprintf(path, sizeof(path), "/proc/%" PRIu32 "/status", pid);
	if (!field_of(path, "Uid:", &uid))
		return -ESRCH;
	*user = (uid_t)uid;
	return 0;
}

int procs_open(const struct procs_map *m, struct file **ret, struct strbuf *why)
{
	const struct target_map map = { .start = m->start, .end = m->end, .dev = m->dev, .ino = m->ino, .path = m->path };

	return maps_open(m->pid, &map, ret, why);
}

uint32_t procs_parent(uint32_t pid)
{
	uint64_t parent;

	return stat_field(pid, STAT_PARENT, &parent) ? (uint32_t)parent : 0;
}

int procs_key(uint32_t pid, struct abi_process_key *ret)
{
	enum { START_CODE = 26, START_STACK = 28 };
	struct strbuf text = { 0 };
	int err = proc_read((pid_t)pid, "stat", &text);

	if (!err && !proc_stat_at(strbuf_str(&text), START_STACK))
		err = -EBADMSG;
	if (!err) {
		ret->start_code = proc_stat_field(strbuf_str(&text), START_CODE);
		ret->start_stack = proc_stat_field(strbuf_str(&text), START_STACK);
	}
	strbuf_fini(&text);
	return err;
}
