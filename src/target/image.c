/*
 * The program that a process runs.  It is opened by the kernel's link /proc/PID/exe.  The path in that link may be
 * valid for the process only, for the tracer only, or for nobody any more; it is only shown to users.
 */
#include <elf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/file.h"
#include "elf/obj.h"
#include "target/maps.h"
#include "target/priv.h"

/* Is this the file at @path? */
static bool is_file(const char *path, uint64_t dev, uint64_t ino)
{
	struct stat st;

	return !stat(path, &st) && st.st_dev == dev && st.st_ino == ino;
}

/* Both ELF classes have these fields in the same places, and the kernel runs its own byte order only. */
static int read_machine(struct target_image *i)
{
	Elf64_Ehdr h;
	ssize_t n = file_pread(i->file->fd, &h, sizeof(h), 0);

	if (n < (ssize_t)sizeof(Elf32_Ehdr) || memcmp(h.e_ident, ELFMAG, SELFMAG))
		return n < 0 ? (int)n : 0;
	i->machine = h.e_machine;
	i->elf_class = h.e_ident[EI_CLASS];
	return 0;
}

/* The target of symbolic link @link, of any length, on the heap; NULL: not readable. */
static char *read_link(const char *link)
{
	size_t cap = 256;
	char *s = NULL, *more;
	ssize_t n;

	for (;; cap *= 2) {
		more = realloc(s, cap);
		if (!more)
			break;
		s = more;
		n = readlink(link, s, cap);
		if (n < 0)
			break;
		if ((size_t)n < cap) {
			s[n] = '\0';
			return s;
		}
	}
	free(s);
	return NULL;
}

int target_image(const struct target *t, struct target_image *ret, struct strbuf *why)
{
	static const char deleted[] = " (deleted)";
	struct target_image i = { 0 };
	struct stat st;
	char exe[32];
	size_t len;
	int err;

	snprintf(exe, sizeof(exe), "/proc/%d/exe", (int)t->pid);
	errno = 0;
	i.path = read_link(exe);
	err = !i.path ? errno ? -errno : -ENOMEM : stat(exe, &st) ? -errno : 0;
	if (!err) {
		err = file_open_link(exe, i.path, &i.file, NULL);
		if (err == -EACCES)	/* what is known without it must do */
			err = 0;
	}
	if (!err && i.file)
		err = read_machine(&i);
	if (err) {
		if (err == -ENOENT)
			err = -ESRCH;
		target_image_fini(&i);
		return target_fail_errno(why, err, "cannot tell what process %d runs", (int)t->pid);
	}
	if (i.file)
		st = i.file->st;
	i.dev = st.st_dev;
	i.ino = st.st_ino;
	i.is_setid = (st.st_mode & S_ISUID) || (st.st_mode & (S_ISGID | S_IXGRP)) == (S_ISGID | S_IXGRP);
	len = strlen(i.path);
	if (len >= sizeof(deleted) && !strcmp(i.path + len - (sizeof(deleted) - 1), deleted) &&
	    !is_file(i.path, i.dev, i.ino)) {
		i.is_deleted = true;
		i.path[len - (sizeof(deleted) - 1)] = '\0';
	}
	*ret = i;
	return 0;
}

void target_image_fini(struct target_image *i)
{
	free(i->path);
	file_close(i->file);
	memset(i, 0, sizeof(*i));
}

/* Is /proc/@pid/@what another object than this process's? */
static bool differs(pid_t pid, const char *what)
{
	struct stat own, theirs;
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, what);
	if (stat(path, &theirs))
		return false;
	snprintf(path, sizeof(path), "/proc/self/%s", what);
	return !stat(path, &own) && (own.st_ino != theirs.st_ino || own.st_dev != theirs.st_dev);
}

bool target_other_root(pid_t pid)
{
	return differs(pid, "ns/mnt") || differs(pid, "root/.");
}

/* Is @needed a system library?  A program that needs no other ones can do only what its own imports show. */
static bool is_libc(const char *needed)
{
	static const char *const names[] = {
		"libc.so.", "libm.so.", "libdl.so.", "libpthread.so.", "librt.so.", "libutil.so.", "libgcc_s.so.",
		"libstdc++.so.", "ld-linux", "ld-musl-", "libc.musl-", "linux-vdso",
	};
	size_t i;

	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (!strncmp(needed, names[i], strlen(names[i])))
			return true;
	return false;
}

/* The program that the target is running, or NULL when it cannot be read. */
static struct obj *open_image(const struct target *t)
{
	struct obj *o = NULL;
	char exe[32];

	snprintf(exe, sizeof(exe), "/proc/%d/exe", (int)t->pid);
	obj_open(exe, &o, NULL);
	return o;
}

/* Do the program's own imports show all that it can do? */
static bool is_plain(struct obj *o)
{
	const struct obj_links *links = obj_links(o);
	unsigned int i;

	for (i = 0; i < links->nneeded; i++)
		if (!is_libc(links->needed[i]))
			return false;
	return !obj_info(o)->is_static;
}

static const char *const execs[] = {
	"execve", "execveat", "fexecve", "execv", "execvp", "execvpe", "execl", "execlp", "execle", NULL
};
/* Functions that can lead to an exec, too. */
static const char *const others[] = { "posix_spawn", "posix_spawnp", "syscall", NULL };
static const char *const forks[] = {
	"fork", "vfork", "_Fork", "clone", "posix_spawn", "posix_spawnp", "system", "popen", "syscall",
	"pthread_create", NULL
};

bool target_image_can_exec(const struct target *t)
{
	struct obj *o = open_image(t);
	bool ret = !o || !is_plain(o) || obj_imports(o, execs) || obj_imports(o, others);

	obj_close(o);
	return ret;
}

bool target_image_only_execs(const struct target *t)
{
	struct obj *o = open_image(t);
	bool ret = o && is_plain(o) && obj_imports(o, execs) && !obj_imports(o, forks);

	obj_close(o);
	return ret;
}

int target_pid_ns(struct target_pid_ns *ret)
{
	enum { INITIAL_INO = 0xEFFFFFFC };	/* PROC_PID_INIT_INO of the kernel, unique to the initial namespace */
	struct stat st;

	if (stat("/proc/self/ns/pid", &st))
		return -errno;
	ret->dev = (uint64_t)major(st.st_dev) << 20 | minor(st.st_dev);
	ret->ino = st.st_ino;
	ret->is_initial = st.st_ino == INITIAL_INO;
	return 0;
}

bool target_other_pids(pid_t pid)
{
	return differs(pid, "ns/pid");
}
