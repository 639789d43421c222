/*
 * What a process has mapped, as /proc/PID/maps tells it.
 */
#ifndef DTAP_TARGET_MAPS_H
#define DTAP_TARGET_MAPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct strbuf;
struct target;

struct target_map {
	uint64_t start, end;	/* addresses; @end is behind the last */
	uint64_t off;		/* in the file, bytes */
	uint64_t dev, ino;	/* as of stat; @ino is 0 when no file is mapped */
	bool is_readable, is_writable, is_exec, is_shared;
	bool is_deleted;	/* the kernel has put " (deleted)" behind the path, which is cut off here */
	const char *path;	/* the file's, or a name in brackets such as [vdso], or "" */
};

struct target_maps {
	struct target_map *v;
	size_t n;
	char *paths;		/* the text that the paths point to */
};

/* The mappings of a target as of now, by address.  -ESRCH: it has ended. */
int target_maps(const struct target *t, struct target_maps *ret, struct strbuf *why);

/* The same of any process; none for a kernel thread or a zombie.  A negative errno, -ESRCH: no such process. */
int maps_read(uint32_t pid, struct target_maps *ret);

/*
 * Read the text of a maps file.  \012 in a path becomes the newline that it stands for; the kernel escapes
 * nothing else.  A line that is none of a maps file's is -EBADMSG; -ENOMEM.
 */
int maps_parse(const char *text, size_t len, struct target_maps *ret);

/* Of one that is all zero, too. */
void target_maps_fini(struct target_maps *m);

#endif
