/* SPDX-License-Identifier: MIT */
/*
 * What is loaded is the tracer's own object, by its descriptor: so its version, and the file in which probes are armed,
 * are the tracer's, and no path has to exist here.  Each of the three things that come from outside has a type that says what
 * is proved of it: the folder (struct guarded), the listener (struct tracer), the object (struct object).
 */
#include "agent/ask.h"

#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <poll.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include "abi/agent.h"
#include "abi/ask.h"
#include "agent/agent.h"
#include "agent/environ.h"
#include "base/guarded.h"

enum { ASKED = 2 * ABI_ASK_SESSIONS, FILES = 2 };

typedef int entry_fn(int fd, uint32_t how);

/* A tracer of user @uid: the socket that it listens on is in a folder guarded for that user, who listens. */
struct tracer {
	int fd;			/* connected; -1: none */
	uint32_t uid;
};

/* A tracer's object, which only the tracer's user and root can write. */
struct object {
	int fd;			/* -1: none */
};

static void print(char *to, size_t size, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
static void print(char *to, size_t size, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(to, size, fmt, ap);
	va_end(ap);
}

/* --- whom this process may believe ---------------------------------------------------------------------- */

/* The file @path, or its first @size - 1 bytes, and a NUL.  How many bytes. */
static size_t read_text(const char *path, char *to, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	size_t len = 0;
	ssize_t n = 0;

	while (fd >= 0 && len < size - 1 && (n = read(fd, to + len, size - 1 - len)) > 0)
		len += (size_t)n;
	if (fd >= 0)
		close(fd);
	to[len] = '\0';
	return len;
}

/* What follows "@name:" and the blank in /proc/PID/status, or NULL. */
static const char *field(const char *status, const char *name)
{
	size_t len = strlen(name);

	for (const char *s = status; s; s = strchr(s, '\n'), s = s ? s + 1 : NULL)
		if (!strncmp(s, name, len) && s[len] == ':' && s[len + 1] == '\t')
			return s + len + 2;
	return NULL;
}

/*
 * Has the process filters of system calls?  Which calls would be its end only a tracer that stops it can find out, which is
 * what happens without this file.
 */
static bool is_filtered(const char *status)
{
	const char *s = field(status, "Seccomp");

	return !s || strncmp(s, "0\n", 2);
}

/* Are the four ids, real, effective, saved and of the file system, the same? */
static bool same_ids(const char *s)
{
	const char *first = s;
	size_t len = s ? strcspn(s, "\t\n") : 0;

	for (int i = 0; i < 4; i++, s += len + 1)
		if (!len || strncmp(s, first, len) || s[len] != (i < 3 ? '\t' : '\n'))
			return false;
	return true;
}

/* Did the kernel run the program with more rights than its caller's?  Of a process that is not dumpable only root can read it. */
static bool is_secure(void)
{
	enum { SECURE = 23, WORDS = 2 * 64 };	/* AT_SECURE */
	uint64_t words[WORDS + 1];
	size_t n = read_text("/proc/self/auxv", (char *)words, sizeof(words)) / sizeof(*words);

	for (size_t i = 0; i + 1 < n; i += 2)
		if (words[i] == SECURE)
			return words[i + 1] != 0;
	return true;
}

/* Has the process no rights that another of its user has not?  That one may trace it, by the kernel's rules (ptrace(2)). */
static bool is_its_users(const char *status)
{
	static const char none[] = "0000000000000000\n";
	const char *caps = field(status, "CapPrm");

	return same_ids(field(status, "Uid")) && same_ids(field(status, "Gid")) && caps && !strncmp(caps, none, sizeof(none) - 1) &&
	       syscall(SYS_prctl, PR_GET_DUMPABLE, 0, 0, 0, 0) == 1 && !is_secure();
}

/* --- tracers -------------------------------------------------------------------------------------------- */

/* A tracer whose queue is full, or that has ended, is none: nothing here waits. */
static struct tracer tracer_connect(const struct guarded *folder, const char *path, const char *name)
{
	struct { int pid; unsigned uid, gid; } peer = { 0, (unsigned)-1, 0 };	/* struct ucred */
	struct sockaddr_un to = { .sun_family = AF_UNIX };
	socklen_t size = sizeof(peer);
	int fd;

	if (strlen(path) + 1 + strlen(name) >= sizeof(to.sun_path))
		return (struct tracer){ .fd = -1 };
	print(to.sun_path, sizeof(to.sun_path), "%s/%s", path, name);
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return (struct tracer){ .fd = -1 };
	if (connect(fd, (struct sockaddr *)&to, sizeof(to)) ||
	    getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) || peer.uid != folder->owner) {
		close(fd);
		return (struct tracer){ .fd = -1 };
	}
	return (struct tracer){ .fd = fd, .uid = folder->owner };
}

/* Is @name, of a listener in the folder, that of the tracer whose agent this process has brought? */
static bool is_own(const char *name)
{
	const char *address = environ_address(), *colon = address ? strchr(address, ':') : NULL;

	return colon && colon - address > ABI_ASK_DIGITS && strlen(name) == sizeof(ABI_ASK_NAME) - 1 + ABI_ASK_DIGITS &&
	       !memcmp(name + sizeof(ABI_ASK_NAME) - 1, colon - ABI_ASK_DIGITS, ABI_ASK_DIGITS);
}

/* Connect to the tracers in folder @path of user @uid, @max at most.  How many. */
static unsigned connect_in(const char *path, uint32_t uid, struct tracer *tracers, unsigned max)
{
	struct row { uint64_t ino; int64_t off; uint16_t size; uint8_t type; char name[]; } __attribute__((packed));
	char rows[4096] __attribute__((aligned(8)));
	struct guarded folder;
	unsigned n = 0;
	long fd, got;

	if (guarded_open(path, uid, &folder))
		return 0;
	fd = syscall(SYS_openat, folder.fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
	while (fd >= 0 && n < max && (got = syscall(SYS_getdents64, (int)fd, rows, sizeof(rows))) > 0) {
		for (const char *at = rows; at < rows + got && n < max; at += ((const struct row *)at)->size) {
			const char *name = ((const struct row *)at)->name;

			if (strncmp(name, ABI_ASK_NAME, sizeof(ABI_ASK_NAME) - 1) || is_own(name))
				continue;
			tracers[n] = tracer_connect(&folder, path, name);
			n += tracers[n].fd >= 0;
		}
	}
	if (fd >= 0)
		close((int)fd);
	guarded_close(&folder);
	return n;
}

/* Is there something at @path?  Without sessions this is all that is done. */
static bool is_there(const char *path)
{
	long fd = syscall(SYS_openat, AT_FDCWD, path, O_PATH | O_NOFOLLOW | O_CLOEXEC, 0);

	if (fd >= 0)
		close((int)fd);
	return fd >= 0;
}

bool ask_is_possible(void)
{
	return is_there(ABI_ASK_ROOT);
}

/* Connect to all tracers that this process may believe. */
static unsigned connect_all(struct tracer tracers[ASKED])
{
	uint32_t own = (uint32_t)syscall(SYS_geteuid);
	char path[ABI_ASK_PATH], status[4096];
	bool roots = is_there(ABI_ASK_ROOT), users = false;
	unsigned n = 0;

	if (own) {
		print(path, sizeof(path), ABI_ASK_USER, own);
		users = is_there(path);
	}
	if (!roots && !users)
		return 0;
	read_text("/proc/self/status", status, sizeof(status));
	if (is_filtered(status))
		return 0;
	if (roots)
		n = connect_in(ABI_ASK_ROOT, 0, tracers, ABI_ASK_SESSIONS);
	if (users && is_its_users(status))
		n += connect_in(path, own, tracers + n, ABI_ASK_SESSIONS);
	return n;
}

/* --- their answers -------------------------------------------------------------------------------------- */

/* The tracer's answer, and the files of its agent, of which missing ones are -1.  False: it has none. */
static bool receive(int fd, struct abi_answer *answer, int files[FILES])
{
	union {
		struct cmsghdr header;
		char space[CMSG_SPACE(FILES * sizeof(int))];
	} control;
	struct iovec iov = { answer, sizeof(*answer) };
	struct msghdr hdr = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof(control) };
	ssize_t got = recvmsg(fd, &hdr, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	struct cmsghdr *c = got >= 0 ? CMSG_FIRSTHDR(&hdr) : NULL;
	size_t bytes = 0;

	files[0] = files[1] = -1;
	if (c && c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS)
		bytes = c->cmsg_len - CMSG_LEN(0);
	memcpy(files, CMSG_DATA(&control.header), bytes < FILES * sizeof(int) ? bytes : FILES * sizeof(int));
	return got == sizeof(*answer);
}

/* @file, which tracer @t has sent, if it is such an object. */
static struct object object_prove(int file, const struct tracer *t)
{
	struct stat st;

	if (file < 0 || syscall(SYS_fstat, file, &st) || !S_ISREG(st.st_mode) || !guarded_is(&st, t->uid))
		return (struct object){ .fd = -1 };
	return (struct object){ .fd = file };
}

/* Load @object; its entry point, or NULL. */
static entry_fn *load(struct object object)
{
	enum { NOW = 2 };	/* RTLD_NOW, and RTLD_LOCAL, which is 0 */
	/*
	 * The loader names the object by this path from now on, so it is a spelling that nobody else uses.  /proc may be
	 * that of another pid namespace, without our ids.
	 */
	char path[64];
	ElfW(Ehdr) header;
	const struct link_map *map;
	uintptr_t at;
	entry_fn *ret;

	if (object.fd < 0 || syscall(SYS_pread64, object.fd, &header, sizeof(header), 0L) != sizeof(header))
		return NULL;
	print(path, sizeof(path), "/proc/./thread-self/fd/%d", object.fd);
	map = agent.py.dlopen(path, NOW);
	if (!map)
		return NULL;
	at = map->l_addr + header.e_entry;
	memcpy(&ret, &at, sizeof(ret));
	return ret;
}

/* Let the agent of tracer @t take over the connection, and wait for it, until @end. */
static void join(const struct tracer *t, long long end)
{
	struct abi_answer answer;
	int files[FILES];
	long long rest = end - agent_now_ms();
	entry_fn *entry = NULL;

	if (receive(t->fd, &answer, files))
		entry = load(object_prove(files[agent.py.gnu_get_libc_version ? 0 : 1], t));
	for (int i = 0; i < FILES; i++)
		if (files[i] >= 0)
			close(files[i]);
	if (entry)
		entry(t->fd, (answer.calls & ABI_ENTRY_CALLS) | (uint32_t)(rest > 1 ? rest : 1) << ABI_ENTRY_WAIT_SHIFT);
	else
		close(t->fd);
}

void ask_sessions(void)
{
	struct tracer tracers[ASKED];
	struct pollfd asked[ASKED];
	unsigned n, left;
	long long end, rest;

	/*
	 * A program of a preloaded tree has an agent of its tracer; one that was held has one for itself.  A second copy asks, too:
	 * its tracer, which has brought the first from outside, answers when that has its hooks.
	 */
	if (!agent.py.dlopen || (environ_address() && !environ_is_held()))
		return;
	end = agent_now_ms() + ABI_ASK_MS;
	n = left = connect_all(tracers);
	for (unsigned i = 0; i < n; i++)
		asked[i] = (struct pollfd){ .fd = tracers[i].fd, .events = POLLIN };
	while (left && (rest = end - agent_now_ms()) > 0) {
		/* A tracer may be bringing its agent in from outside, which needs the GIL. */
		void *thread = agent.py.PyEval_SaveThread();

		poll(asked, n, (int)rest);
		agent.py.PyEval_RestoreThread(thread);
		for (unsigned i = 0; i < n; i++) {
			if (asked[i].fd < 0 || !asked[i].revents)
				continue;
			join(&tracers[i], end);
			asked[i].fd = -1;
			left--;
		}
	}
	for (unsigned i = 0; i < n; i++)
		if (asked[i].fd >= 0)
			close(asked[i].fd);
}
