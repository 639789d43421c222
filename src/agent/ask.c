/* SPDX-License-Identifier: MIT */
/*
 * What is loaded is the tracer's own object, by its descriptor: so its version, and the file in which probes are armed,
 * are the tracer's, and no path has to exist here.
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
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include "abi/agent.h"
#include "abi/ask.h"
#include "agent/agent.h"

enum { ASKED = 2 * ABI_ASK_SLOTS, FILES = 2 };

typedef int entry_fn(int fd, uint32_t how);

static void print(char *to, size_t size, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
static void print(char *to, size_t size, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(to, size, fmt, ap);
	va_end(ap);
}

/* Connect @fd to a tracer's socket.  A failed attempt leaves it as it was. */
static bool connects(int fd, unsigned uid, unsigned slot)
{
	struct { int pid; unsigned uid, gid; } peer = { 0, (unsigned)-1, 0 };	/* struct ucred */
	struct sockaddr_un name = { .sun_family = AF_UNIX };
	socklen_t size = sizeof(peer);
	char text[64];

	print(text, sizeof(text), ABI_ASK_NAME, uid, slot);
	memcpy(name.sun_path + 1, text, strlen(text));
	return !connect(fd, (struct sockaddr *)&name, (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + strlen(text))) &&
	       !getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) && peer.uid == uid;
}

/* Connect to all tracers that there are. */
static unsigned connect_all(struct pollfd asked[ASKED])
{
	unsigned own = (unsigned)syscall(SYS_geteuid), n = 0;
	int fd = -1;

	for (unsigned i = 0; i < (own ? ASKED : ABI_ASK_SLOTS); i++) {
		if (fd < 0)
			fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
		if (fd < 0)
			break;
		errno = 0;
		if (connects(fd, i < ABI_ASK_SLOTS ? 0 : own, i % ABI_ASK_SLOTS)) {
			asked[n++] = (struct pollfd){ .fd = fd, .events = POLLIN };
			fd = -1;
		} else if (!errno) {	/* connected to somebody else */
			close(fd);
			fd = -1;
		}
	}
	if (fd >= 0)
		close(fd);
	return n;
}

/*
 * Has the process filters of system calls?  Which calls would be its end only a tracer that stops it can find out, which is
 * what happens without this file.
 */
static bool is_filtered(void)
{
	static const char row[] = "\nSeccomp:\t0\n";
	char status[4096];
	int fd = open("/proc/self/status", O_RDONLY | O_CLOEXEC);
	ssize_t n = fd >= 0 ? read(fd, status, sizeof(status) - 1) : 0;

	if (fd >= 0)
		close(fd);
	status[n > 0 ? n : 0] = '\0';
	for (const char *s = strchr(status, '\n'); s; s = strchr(s + 1, '\n'))
		if (!strncmp(s, row, sizeof(row) - 1))
			return false;
	return true;
}

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

/* Load the object @file; its entry point, or NULL. */
static entry_fn *load(int file)
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

	if (syscall(SYS_pread64, file, &header, sizeof(header), 0L) != sizeof(header))
		return NULL;
	print(path, sizeof(path), "/proc/./thread-self/fd/%d", file);
	map = agent.py.dlopen(path, NOW);
	if (!map)
		return NULL;
	at = map->l_addr + header.e_entry;
	memcpy(&ret, &at, sizeof(ret));
	return ret;
}

/* Let the tracer's agent take over @fd, and wait for it, until @end. */
static void join(int fd, long long end)
{
	struct abi_answer answer;
	int files[FILES];
	long long rest = end - agent_now_ms();
	entry_fn *entry = NULL;

	if (receive(fd, &answer, files))
		entry = load(files[agent.py.gnu_get_libc_version ? 0 : 1]);
	for (int i = 0; i < FILES; i++)
		if (files[i] >= 0)
			close(files[i]);
	if (entry)
		entry(fd, (answer.calls & ABI_ENTRY_CALLS) | (uint32_t)(rest > 1 ? rest : 1) << ABI_ENTRY_WAIT_SHIFT);
	else
		close(fd);
}

void ask_sessions(void)
{
	struct pollfd asked[ASKED];
	unsigned n, left;
	long long end, rest;

	/* A program of a preloaded tree has an agent of its tracer. */
	if (!agent.py.dlopen || getenv(ABI_AGENT_ENV))
		return;
	n = left = connect_all(asked);
	if (!n)
		return;
	end = agent_now_ms() + (is_filtered() ? 0 : ABI_ASK_MS);
	while (left && (rest = end - agent_now_ms()) > 0) {
		/* A tracer may be bringing its agent in from outside, which needs the GIL. */
		void *thread = agent.py.PyEval_SaveThread();

		poll(asked, n, (int)rest);
		agent.py.PyEval_RestoreThread(thread);
		for (unsigned i = 0; i < n; i++) {
			if (asked[i].fd < 0 || !asked[i].revents)
				continue;
			join(asked[i].fd, end);
			asked[i].fd = -1;
			left--;
		}
	}
	for (unsigned i = 0; i < n; i++)
		if (asked[i].fd >= 0)
			close(asked[i].fd);
}
