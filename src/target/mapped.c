/*
 * From a mapping to the file that is mapped, whatever the root and mount namespace of its process, deleted or not.
 *
 * The kernel's link to the file (map_files) needs a capability.  The path in /proc/PID/maps may lead to another file:
 * it is relative to the tracer's root for a process under chroot, but to the process's mount namespace if that is
 * another one, and the file there may have been replaced.  So each way is tried, and its result is accepted only if it
 * is the file that is mapped.
 */
#include <errno.h>
#include <inttypes.h>
#include <linux/magic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/file.h"
#include "base/strbuf.h"
#include "target/maps.h"

/* File systems of which stat tells the kernel's own numbers (generic_fillattr() in the kernel's fs/stat.c). */
static bool tells_numbers(int fd)
{
	static const long magic[] = { EXT4_SUPER_MAGIC, XFS_SUPER_MAGIC, TMPFS_MAGIC };

	return file_system_among(fd, magic, sizeof(magic) / sizeof(magic[0]));
}

int maps_identify(const struct file *f, uint64_t *dev, uint64_t *ino)
{
	struct target_maps maps;
	void *own;
	int err;

	if (tells_numbers(f->fd)) {
		*dev = f->dev;
		*ino = f->ino;
		return 0;
	}
	own = mmap(NULL, 1, PROT_READ, MAP_PRIVATE, f->fd, 0);
	if (own == MAP_FAILED)
		return -errno;
	err = maps_read((uint32_t)getpid(), &maps);
	if (!err) {
		err = -ENOENT;
		for (size_t i = 0; i < maps.n && err; i++) {
			if (maps.v[i].start != (uintptr_t)own)
				continue;
			*dev = maps.v[i].dev;
			*ino = maps.v[i].ino;
			err = 0;
		}
		target_maps_fini(&maps);
	}
	munmap(own, 1);
	return err;
}

/* Is it the file of mapping @m?  On btrfs and overlayfs, maps has other numbers than stat: map it to compare. */
static bool is_mapped(const struct file *f, const struct target_map *m)
{
	uint64_t dev, ino;

	if (f->dev == m->dev && f->ino == m->ino)
		return true;
	return !maps_identify(f, &dev, &ino) && dev == m->dev && ino == m->ino;
}

/* The ways to open the file, the best first. */
static int open_way(int way, uint32_t pid, const struct target_map *m, struct file **ret)
{
	char path[96];

	switch (way) {
	case 0:
		snprintf(path, sizeof(path), "/proc/%" PRIu32 "/map_files/%" PRIx64 "-%" PRIx64, pid, m->start, m->end);
		return file_open_link(path, m->path, ret, NULL);
	case 1:
		return file_open(m->path, ret, NULL);
	default:
		snprintf(path, sizeof(path), "/proc/%" PRIu32 "/root", pid);
		return file_open_in(path, m->path, ret, NULL);
	}
}

int maps_open(uint32_t pid, const struct target_map *m, struct file **ret, struct strbuf *why)
{
	int err = -ENOENT;

	for (int way = 0; way < 3 && m->ino && *m->path == '/'; way++) {
		int e = open_way(way, pid, m, ret);

		if (!e && is_mapped(*ret, m))
			return 0;
		if (!e)
			file_close(*ret);
		else if (way && err == -ENOENT && e != -ENOTSUP)	/* map_files: few may use it */
			err = e;
	}
	if (why && err == -ENOENT)
		strbuf_printf(why, "%s: what process %" PRIu32 " has mapped is not there any more", m->path, pid);
	else if (why)
		strbuf_printf(why, "%s: %s", m->path, strerror(-err));
	return err;
}
