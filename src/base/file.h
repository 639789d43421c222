/*
 * A file, open and verified: later uses see the same file that was checked, whatever its path then leads to.
 *
 * A path is untrusted.  It can lead to a FIFO, where open waits; to a device, where open has side effects; to a kernel
 * file, where a read has (trace_pipe); and to another file a moment later.  So a path is resolved once, to a
 * descriptor that can only name the file (O_PATH).  If it is a regular file, it is opened for reading through that
 * descriptor.  From then on only the descriptor is used.  The path is kept for messages.
 *
 * A file is reference counted, because its users end at different times and in any order: its parser, the probes found
 * in it, and the lookup of addresses.  Thousands of functions of one file share one descriptor.
 *
 * Functions that can fail return a negative errno and append one line, without a newline, to @why, which may be NULL.
 */
#ifndef DTAP_BASE_FILE_H
#define DTAP_BASE_FILE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

struct strbuf;

struct file {
	int fd;			/* for reading; close-on-exec */
	char *path;		/* for messages: never open it */
	uint64_t dev, ino, size;	/* from stat(2) */
	struct stat st;		/* from when it was opened */
	uint64_t ends;		/* digest of its first and last bytes at that time */
	atomic_uint users;
};

/*
 * Open @path for reading.  Never blocks, and opens only regular files of real file systems; others are -ENOTSUP.  On
 * success *ret has one reference, which file_close() releases.
 */
int file_open(const char *path, struct file **ret, struct strbuf *why);

/* The same for a file that @link leads to, such as /proc/PID/exe, and that messages call @path. */
int file_open_link(const char *link, const char *path, struct file **ret, struct strbuf *why);

/*
 * The same for a process or a folder with a root of its own, @root (/proc/PID/root): @path and symbolic links are
 * resolved inside that root.  openat2(2), RESOLVE_IN_ROOT.
 */
int file_open_in(const char *root, const char *path, struct file **ret, struct strbuf *why);

/* From @fd, open for reading, of a regular file that messages call @path.  Takes over @fd, also on failure. */
int file_from(int fd, const char *path, struct file **ret, struct strbuf *why);

/* Take a reference; returns @f.  Accepts NULL. */
struct file *file_use(struct file *f);

/* Release a reference; the last one closes the file.  Accepts NULL. */
void file_close(struct file *f);

/*
 * Does the file still have the content it had when it was opened?  0, or -ESTALE: it was rewritten in place.  Compares
 * the size and modification time; if only the change time differs (renamed, linked, unlinked ...), also the ends.
 * Does not notice writes through a mapping that was written through before.
 */
int file_check(const struct file *f);

/* Is the file of @fd in a file system of one of the @n kinds @magic (statfs(2), f_type)?  False also if that is not known. */
bool file_system_among(int fd, const long *magic, size_t n);

/* Are both the same file? */
bool file_same(const struct file *a, const struct file *b);

/* Do the paths lead to the same file now?  Only for uses where a later change does not matter. */
bool file_same_path(const char *a, const char *b);

/*
 * Can others than root and this process's user write to @f, or put another file in its place?  Looks at the file and at all
 * folders of the path that its link led to; in one with the sticky bit others cannot replace files.  A group that is 0 or has
 * the owner's number is not of others.  True: *@what is the one of them, if it is not NULL.
 */
bool file_is_others(const struct file *f, struct strbuf *what);

/* A path for the kernel or for functions that need one: it leads to the open file and to no other. */
enum { FILE_LINK_MAX = 32 };
const char *file_link(const struct file *f, char buf[static FILE_LINK_MAX]);

/*
 * The @n bytes at @off of @fd, all that there are up to the file's end: interrupted and short reads are gone on with.  Returns their
 * number, or -errno.
 */
ssize_t file_pread(int fd, void *buf, size_t n, uint64_t off);

/* Append the file's content to @out.  -EFBIG: it is more than @max bytes. */
int file_text(const struct file *f, size_t max, struct strbuf *out);

/*
 * Raise this process's limit of descriptors to its maximum.  To be called after EMFILE: returns true, once per thread,
 * if another try is worthwhile.  Other programs must be started with the limit that this one was started with:
 * restore it between fork(2) and exec, or before posix_spawn(3), and then raise it again.
 */
bool file_descriptors_more(void);
void file_descriptors_restore(void);
void file_descriptors_again(void);

#endif
