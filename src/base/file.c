#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <linux/openat2.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

#include "base/oom.h"
#include "base/self.h"
#include "base/strbuf.h"

enum {
	ENDS = 4096,			/* bytes at each end that are digested */
	TICK_MS = 20,			/* more than a tick of the kernel's clock (CONFIG_HZ) */
	MORE_DESCRIPTORS = 1 << 20,	/* the default of fs.nr_open, the maximum of a process */
};

/* --- descriptors --------------------------------------------------------------------------------------- */

/* The limit that the process was started with.  At file scope because the limit is per process. */
static struct rlimit first_limit, raised_limit;
static bool is_raised;
static pthread_once_t raise_once = PTHREAD_ONCE_INIT;

static void raise_limit(void)
{
	raised_limit = (struct rlimit){ MORE_DESCRIPTORS, MORE_DESCRIPTORS };
	if (getrlimit(RLIMIT_NOFILE, &first_limit) || first_limit.rlim_cur >= MORE_DESCRIPTORS)
		return;
	is_raised = !setrlimit(RLIMIT_NOFILE, &raised_limit);
	if (is_raised || first_limit.rlim_cur >= first_limit.rlim_max)
		return;
	raised_limit = (struct rlimit){ first_limit.rlim_max, first_limit.rlim_max };
	is_raised = !setrlimit(RLIMIT_NOFILE, &raised_limit);
}

bool file_descriptors_more(void)
{
	static _Thread_local bool asked;	/* per thread: another may have raised it since this one failed */

	if (asked)
		return false;
	asked = true;
	pthread_once(&raise_once, raise_limit);
	return is_raised;
}

void file_descriptors_restore(void)
{
	if (is_raised)
		setrlimit(RLIMIT_NOFILE, &first_limit);
}

void file_descriptors_again(void)
{
	if (is_raised)
		setrlimit(RLIMIT_NOFILE, &raised_limit);
}

/* --- opening ------------------------------------------------------------------------------------------- */

static int refuse(struct strbuf *why, const char *path, int err)
{
	if (why)
		strbuf_printf(why, "%s: %s", path, strerror(-err));
	return shortage_note(err);
}

static int refuse_kind(struct strbuf *why, const char *path, const char *kind)
{
	if (why)
		strbuf_printf(why, "%s: not a regular file, but %s", path, kind);
	return -ENOTSUP;
}

static const char *kind_of(mode_t mode)
{
	switch (mode & S_IFMT) {
	case S_IFDIR:
		return "a folder";
	case S_IFIFO:
		return "a FIFO";
	case S_IFSOCK:
		return "a socket";
	case S_IFCHR:
	case S_IFBLK:
		return "a device";
	}
	return "something else";
}

bool file_system_among(int fd, const long *magic, size_t n)
{
	struct statfs fs;

	if (fstatfs(fd, &fs))
		return false;
	for (size_t i = 0; i < n; i++)
		if (fs.f_type == magic[i])
			return true;
	return false;
}

/* File systems whose files are kernel functions: a read calls the function, which may never return. */
static bool is_kernels(int fd)
{
	static const long magic[] = {
		PROC_SUPER_MAGIC, SYSFS_MAGIC, DEBUGFS_MAGIC, TRACEFS_MAGIC, SECURITYFS_MAGIC, SELINUX_MAGIC,
		SMACK_MAGIC, CGROUP_SUPER_MAGIC, CGROUP2_SUPER_MAGIC, BPF_FS_MAGIC, EFIVARFS_MAGIC, PSTOREFS_MAGIC,
		BINFMTFS_MAGIC, 0x62656570 /* configfs */, 0x19800202 /* mqueue */,
	};

	return file_system_among(fd, magic, sizeof(magic) / sizeof(magic[0]));
}

/* May the file that @fd names be opened and read?  0, or a negative errno. */
static int check_kind(int fd, const char *path, struct stat *st, struct strbuf *why)
{
	if (fstat(fd, st))
		return refuse(why, path, -errno);
	if (!S_ISREG(st->st_mode))
		return refuse_kind(why, path, kind_of(st->st_mode));
	if (is_kernels(fd))
		return refuse_kind(why, path, "one of the kernel's own");
	return 0;
}

/* FNV-1a by words of 8 bytes; @bytes has room to pad the last word with 0. */
static uint64_t digest(uint64_t h, unsigned char *bytes, size_t n)
{
	uint64_t word;

	memset(bytes + n, 0, sizeof(word));
	for (size_t i = 0; i < n; i += sizeof(word)) {
		memcpy(&word, bytes + i, sizeof(word));
		h = (h ^ word) * 0x100000001b3;
		h ^= h >> 32;
	}
	return h;
}

ssize_t file_pread(int fd, void *buf, size_t n, uint64_t off)
{
	size_t done = 0;
	ssize_t got = 1;

	while (done < n && got && off <= INT64_MAX - done) {
		got = pread(fd, (char *)buf + done, n - done, (off_t)(off + done));
		if (got < 0 && errno != EINTR)
			return shortage_note(-errno);
		done += got > 0 ? (size_t)got : 0;
	}
	return (ssize_t)done;
}

/* In an ELF file the ends have the headers, the build id where linkers put it, and the section headers. */
static uint64_t digest_ends(int fd, uint64_t size)
{
	unsigned char bytes[ENDS + sizeof(uint64_t)];
	uint64_t h = 0xcbf29ce484222325;
	ssize_t n = file_pread(fd, bytes, ENDS, 0);

	h = digest(h, bytes, n > 0 ? (size_t)n : 0);
	if (size <= ENDS)
		return h;
	n = file_pread(fd, bytes, ENDS, size - ENDS);
	return digest(h, bytes, n > 0 ? (size_t)n : 0);
}

static bool is_before(const struct timespec *a, const struct timespec *b)
{
	return a->tv_sec < b->tv_sec || (a->tv_sec == b->tv_sec && a->tv_nsec < b->tv_nsec);
}

/*
 * File times come from the kernel's coarse clock.  A file that was changed in the current tick could be changed again
 * with the same time: so wait for the end of the tick before reading it.
 */
static void await_tick(const struct timespec *changed)
{
	const struct timespec ms = { 0, 1000000 };
	struct timespec now;

	for (int i = 0; i < TICK_MS; i++) {
		clock_gettime(CLOCK_REALTIME_COARSE, &now);
		if (is_before(changed, &now) || changed->tv_sec > now.tv_sec + 1)
			return;
		nanosleep(&ms, NULL);
	}
}

/* @fd has passed check_kind(); it is closed on failure. */
static int new_file(int fd, const char *path, const struct stat *st, struct file **ret, struct strbuf *why)
{
	struct file *f = calloc(1, sizeof(*f));

	if (f)
		f->path = strdup(path);
	if (!f || !f->path) {
		free(f);
		close(fd);
		return refuse(why, path, -ENOMEM);
	}
	f->fd = fd;
	f->st = *st;
	f->dev = st->st_dev;
	f->ino = st->st_ino;
	f->size = (uint64_t)st->st_size;
	f->users = 1;
	f->ends = digest_ends(fd, f->size);
	*ret = f;
	return 0;
}

int file_from(int fd, const char *path, struct file **ret, struct strbuf *why)
{
	struct stat st;
	int err = check_kind(fd, path, &st, why);

	if (err) {
		close(fd);
		return err;
	}
	return new_file(fd, path, &st, ret, why);
}

/* Open the file that @named, an O_PATH descriptor, names; @named is closed. */
static int open_named(int named, const char *path, struct file **ret, struct strbuf *why)
{
	char link[FILE_LINK_MAX];
	struct stat st;
	int fd, err = check_kind(named, path, &st, why);

	if (err) {
		close(named);
		return err;
	}
	snprintf(link, sizeof(link), "/proc/self/fd/%d", named);
	/* For a regular file, O_NONBLOCK means not to wait for the holder of a lease (fcntl(2), F_SETLEASE). */
	fd = open(link, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (fd < 0 && errno == EMFILE && file_descriptors_more())
		fd = open(link, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	err = -errno;
	close(named);
	if (fd < 0)
		return refuse(why, path, err);
	err = file_from(fd, path, ret, why);
	if (!err)
		await_tick(&(*ret)->st.st_ctim);
	return err;
}

int file_open_link(const char *link, const char *path, struct file **ret, struct strbuf *why)
{
	int named = open(link, O_PATH | O_CLOEXEC);

	if (named < 0 && errno == EMFILE && file_descriptors_more())
		named = open(link, O_PATH | O_CLOEXEC);
	if (named < 0)
		return refuse(why, path, -errno);
	return open_named(named, path, ret, why);
}

int file_open(const char *path, struct file **ret, struct strbuf *why)
{
	return file_open_link(path, path, ret, why);
}

int file_open_in(const char *root, const char *path, struct file **ret, struct strbuf *why)
{
	struct open_how how = { .flags = O_PATH | O_CLOEXEC, .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS };
	int dir = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC), named;

	if (dir < 0)
		return refuse(why, root, -errno);
	do
		named = (int)syscall(SYS_openat2, dir, path, &how, sizeof(how));
	while (named < 0 && errno == EMFILE && file_descriptors_more());
	if (named < 0) {
		int err = -errno;

		close(dir);
		return refuse(why, path, err);
	}
	close(dir);
	return open_named(named, path, ret, why);
}

struct file *file_use(struct file *f)
{
	if (f)
		atomic_fetch_add_explicit(&f->users, 1, memory_order_relaxed);
	return f;
}

void file_close(struct file *f)
{
	if (!f || atomic_fetch_sub_explicit(&f->users, 1, memory_order_acq_rel) > 1)
		return;
	close(f->fd);
	free(f->path);
	free(f);
}

/* --- open files ---------------------------------------------------------------------------------------- */

static bool same_time(const struct timespec *a, const struct timespec *b)
{
	return a->tv_sec == b->tv_sec && a->tv_nsec == b->tv_nsec;
}

int file_check(const struct file *f)
{
	struct stat st;

	if (fstat(f->fd, &st))
		return -errno;
	if (st.st_size != f->st.st_size || !same_time(&st.st_mtim, &f->st.st_mtim))
		return -ESTALE;
	if (same_time(&st.st_ctim, &f->st.st_ctim))
		return 0;
	return digest_ends(f->fd, f->size) == f->ends ? 0 : -ESTALE;
}

bool file_same(const struct file *a, const struct file *b)
{
	return a->dev == b->dev && a->ino == b->ino;
}

bool file_same_path(const char *a, const char *b)
{
	struct stat x, y;

	return a && b && !stat(a, &x) && !stat(b, &y) && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

const char *file_link(const struct file *f, char buf[static FILE_LINK_MAX])
{
	snprintf(buf, FILE_LINK_MAX, "/proc/self/fd/%d", f->fd);
	return buf;
}

int file_text(const struct file *f, size_t max, struct strbuf *out)
{
	char buf[4096];
	size_t at = 0;
	ssize_t n;

	while ((n = file_pread(f->fd, buf, sizeof(buf), at)) > 0) {
		if ((size_t)n > max - at)
			return -EFBIG;
		strbuf_add(out, buf, (size_t)n);
		at += (size_t)n;
	}
	return (int)n;
}

static bool is_foreign(const struct stat *st)
{
	return (st->st_uid && st->st_uid != geteuid()) || self_is_others(st);
}

static bool is_foreign_folder(const char *path)
{
	struct stat st;

	if (stat(path, &st))
		return true;
	st.st_mode &= st.st_mode & S_ISVTX ? ~(mode_t)(S_IWGRP | S_IWOTH) : ~(mode_t)0;
	return is_foreign(&st);
}

bool file_is_others(const struct file *f, struct strbuf *what)
{
	char link[FILE_LINK_MAX], path[PATH_MAX];
	ssize_t n = readlink(file_link(f, link), path, sizeof(path) - 1);
	bool found;

	path[n < 0 ? 0 : n] = '\0';
	found = n <= 0 || is_foreign(&f->st);
	for (char *slash = path; !found && (slash = strrchr(path, '/'));) {
		bool is_root = slash == path;

		slash[is_root] = '\0';
		found = is_foreign_folder(path);
		if (is_root)
			break;
	}
	if (found && what)
		strbuf_puts(what, path);
	return found;
}
