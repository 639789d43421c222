/*
 * What a process runs, and how the tracer gets at its files.
 *
 * A path that the kernel shows is as the process sees it only when both share the file tree: for a process
 * under chroot it is the tracer's, for one in another mount namespace it is that namespace's, and a deleted
 * file has none.  So a path is believed only if it leads to the very file (device and inode); otherwise the
 * process's own root is tried, and at last the kernel's link to the file.
 */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "elf/obj.h"
#include "target/maps.h"
#include "target/priv.h"

/* Does @path lead to this file? */
static bool is_file(const char *path, uint64_t dev, uint64_t ino)
{
	struct stat st;

	return !stat(path, &st) && st.st_dev == dev && st.st_ino == ino;
}

/*
 * Add the path by which we get at the file that is shown as @path; @link leads there if the kernel lets us,
 * and then also tells which file it is: btrfs and overlayfs show another device in maps than stat does.
 */
static int reach(const struct target *t, const char *path, uint64_t dev, uint64_t ino, const char *link,
		 struct strbuf *out)
{
	struct strbuf rooted = { 0 };
	struct stat st;
	bool linked = !stat(link, &st);
	int err = 0;

	if (linked) {
		dev = st.st_dev;
		ino = st.st_ino;
	}
	strbuf_printf(&rooted, "/proc/%d/root%s", (int)t->pid, path);
	if (path[0] == '/' && is_file(path, dev, ino))
		strbuf_puts(out, path);
	else if (path[0] == '/' && is_file(strbuf_str(&rooted), dev, ino))
		strbuf_puts(out, strbuf_str(&rooted));
	else if (linked)
		strbuf_puts(out, link);
	else
		err = -ENOENT;
	strbuf_fini(&rooted);
	return err;
}

int target_reach(const struct target *t, const struct target_map *m, struct strbuf *out)
{
	char link[96];

	if (!m->ino)
		return -ENOENT;
	snprintf(link, sizeof(link), "/proc/%d/map_files/%llx-%llx", (int)t->pid, (unsigned long long)m->start,
		 (unsigned long long)m->end);
	return reach(t, m->path, m->dev, m->ino, link, out);
}

/* Both ELF classes have these fields in the same places, and the kernel runs its own byte order only. */
static void read_machine(const char *path, struct target_image *i)
{
	Elf64_Ehdr h;
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, &h, sizeof(h));

	if (fd >= 0)
		close(fd);
	if (n < (ssize_t)sizeof(Elf32_Ehdr) || memcmp(h.e_ident, ELFMAG, SELFMAG))
		return;
	i->machine = h.e_machine;
	i->elf_class = h.e_ident[EI_CLASS];
}

/* The path that /proc/PID/exe links to, of any length; heap, NULL when there is none. */
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
	struct strbuf where = { 0 };
	struct target_image i = { 0 };
	char exe[32];
	struct stat st;
	size_t len;
	int err;

	snprintf(exe, sizeof(exe), "/proc/%d/exe", (int)t->pid);
	errno = 0;
	i.path = read_link(exe);
	if (!i.path || stat(exe, &st)) {
		err = errno == ENOENT ? -ESRCH : errno ? -errno : -ENOMEM;
		goto fail;
	}
	i.dev = st.st_dev;
	i.ino = st.st_ino;
	i.is_setid = (st.st_mode & S_ISUID) || (st.st_mode & (S_ISGID | S_IXGRP)) == (S_ISGID | S_IXGRP);
	len = strlen(i.path);
	if (len >= sizeof(deleted) && !strcmp(i.path + len - (sizeof(deleted) - 1), deleted) &&
	    !is_file(i.path, i.dev, i.ino)) {
		i.is_deleted = true;
		i.path[len - (sizeof(deleted) - 1)] = '\0';
	}
	err = reach(t, i.path, i.dev, i.ino, exe, &where);
	if (err)
		goto fail;
	if (where.failed) {
		err = -ENOMEM;
		goto fail;
	}
	i.reach = where.s;
	read_machine(exe, &i);
	*ret = i;
	return 0;
fail:
	strbuf_fini(&where);
	target_image_fini(&i);
	return target_fail_errno(why, err, "cannot tell what process %d runs", (int)t->pid);
}

void target_image_fini(struct target_image *i)
{
	free(i->path);
	free(i->reach);
	memset(i, 0, sizeof(*i));
}

/* Does /proc/@pid/@what lead to something else than this process's? */
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

/* Part of the C library: what links to nothing else shows in its own imports what it can do. */
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

/* Do its own imports show all that it can do? */
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
/* What comes to an exec, too. */
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
	enum { INITIAL_INO = 0xEFFFFFFC };	/* PROC_PID_INIT_INO of the kernel: never another one's */
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
