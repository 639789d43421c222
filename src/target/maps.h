/*
 * The mappings of a process, as in /proc/PID/maps.
 */
#ifndef DTAP_TARGET_MAPS_H
#define DTAP_TARGET_MAPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct file;
struct strbuf;
struct target;

struct target_map {
	uint64_t start, end;	/* addresses; @end is exclusive */
	uint64_t off;		/* offset in the file, bytes */
	uint64_t dev, ino;	/* as of stat; @ino is 0 when no file is mapped */
	bool is_readable, is_writable, is_exec, is_shared;
	bool is_deleted;	/* the kernel has added " (deleted)" to the path; removed from @path */
	const char *path;	/* the file's, or a name in brackets such as [vdso], or "" */
};

struct target_maps {
	struct target_map *v;
	size_t n;
	char *paths;		/* the text that the paths point into */
};

/* The present mappings of a target, in order of address.  -ESRCH: it has ended. */
int target_maps(const struct target *t, struct target_maps *ret, struct strbuf *why);

/* The same for any process; none for a kernel thread or a zombie.  A negative errno, -ESRCH: no such process. */
int maps_read(uint32_t pid, struct target_maps *ret);

/*
 * Parse the text of a maps file.  \012 in a path becomes the newline that it stands for; the kernel escapes nothing
 * else.  -EBADMSG: a line is not valid; -ENOMEM.
 */
int maps_parse(const char *text, size_t len, struct target_maps *ret);

/*
 * Open the file of mapping @m of process @pid, even if the process is in another mount namespace or under another root,
 * or the file is deleted.  It is exactly that file, not another one at the same path.  -ENOENT: the mapping has no
 * file, or one that cannot be reached.
 */
int maps_open(uint32_t pid, const struct target_map *m, struct file **ret, struct strbuf *why);

/* Device and inode of @f as in /proc/PID/maps; on btrfs and overlayfs stat shows others.  0 or a negative errno. */
int maps_identify(const struct file *f, uint64_t *dev, uint64_t *ino);

/* Accepts a zeroed one. */
void target_maps_fini(struct target_maps *m);

#endif
