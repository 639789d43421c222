/*
 * LD_PRELOAD for a tracer, or for what it traces: the n-th call of a kind fails, as the system could have it fail.
 *
 * The file $FAULT_ORDER, which is mapped, says what is to fail, and is told what there was (struct order; inject.py has the
 * other side).  It may be written anew at any time.  A process that is forked goes on with it; what it executes has
 * neither the library nor the variable.
 *
 * Calls inside of the C library are not seen, but for those of malloc and its kin.
 */
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <execinfo.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/uio.h>
#include <sys/vfs.h>
#include <unistd.h>

/* In the order of KINDS in inject.py. */
enum { KIND_NONE, KIND_MEMORY, KIND_MAP, KIND_MEMFD, KIND_OPEN, KIND_BPF, KIND_PERF, KIND_PTRACE, KIND_VM, KIND_READ,
       KIND_WRITE, KIND_THREAD, KIND_FORK, KIND_SOCKET, KIND_SEND, KIND_RECEIVE, KIND_POLL, KIND_DESCRIPTOR, KIND_CONTROL,
       KIND_STAT };

struct order {
	_Atomic uint64_t calls, failed;	/* told: calls of the kind, and those that failed */
	_Atomic uint64_t at;		/* which call fails, from 1 on; 0: none, calls are only counted */
	int32_t error;			/* its errno */
	uint8_t kind;			/* KIND_ */
	uint8_t and_later;		/* all later ones fail as well */
	uint8_t is_short;		/* of reads and writes: one byte is read or written, at most */
	char from[64];			/* only calls from objects whose path has this in it count; "": from all */
	char where[2048];		/* told: the callers of the first that failed, as OBJECT+OFFSET */
};

static struct order nobody, *order = &nobody;

static void *next_of(const char *name)
{
	return dlsym(RTLD_NEXT, name);
}

#define NEXT(name) ({ static __typeof__(&name) next; if (!next) next = (__typeof__(&name))(uintptr_t)next_of(#name); next; })

__attribute__((constructor)) static void start(void)
{
	const char *path = getenv("FAULT_ORDER");
	void *map;
	int fd;

	if (!path)
		return;
	fd = NEXT(open)(path, O_RDWR | O_CLOEXEC);
	map = NEXT(mmap)(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (map == MAP_FAILED)
		abort();
	close(fd);
	unsetenv("LD_PRELOAD");
	unsetenv("FAULT_ORDER");
	order = map;
}

/* The callers, nearest first; of an agent only the nearest, for unwinding loads a library. */
static void tell(void *caller)
{
	void *callers[20];
	int i = 0, n = order->from[0] ? 0 : backtrace(callers, 20);
	size_t used = 0;
	Dl_info info;

	while (i < n && callers[i] != caller)
		i++;
	if (i == n) {
		callers[0] = caller;
		i = 0;
		n = 1;
	}
	for (; i < n && used < sizeof(order->where); i++)
		if (dladdr(callers[i], &info) && info.dli_fname)
			used += (size_t)snprintf(order->where + used, sizeof(order->where) - used, "%s+%#lx ", info.dli_fname,
						 (unsigned long)((char *)callers[i] - (char *)info.dli_fbase));
}

static bool counts(void *caller)
{
	Dl_info info;

	return !order->from[0] || (dladdr(caller, &info) && info.dli_fname && strstr(info.dli_fname, order->from));
}

static __thread bool inside;		/* the thread's calls are our own, or a sanitizer's */

/* Is this the call that fails? */
static bool fails(int kind, void *caller)
{
	uint64_t n, at;
	bool is_it;

	if (kind != order->kind || inside)
		return false;
	inside = true;
	at = order->at;
	n = counts(caller) ? atomic_fetch_add(&order->calls, 1) + 1 : 0;
	is_it = at && n && (order->and_later ? n >= at : n == at);
	if (is_it && !atomic_fetch_add(&order->failed, 1))
		tell(caller);
	inside = false;
	if (is_it)
		errno = order->error;
	return is_it;
}

#define FAILS(k) fails(k, __builtin_return_address(0))

/* --- memory: until dlsym has found them there is a little of our own, which is never given back ----------- */

static char early[8192];
static size_t early_used;
static __thread bool is_finding;

static void *from_early(size_t size)
{
	void *p = early + early_used;

	early_used += (size + 15) & ~(size_t)15;
	return early_used <= sizeof(early) ? p : NULL;
}

static bool is_early(const void *p)
{
	return (const char *)p >= early && (const char *)p < early + sizeof(early);
}

static void *find(_Atomic(void *) *to, const char *name)
{
	void *p = *to;

	if (p || is_finding)
		return p;
	is_finding = true;
	*to = p = next_of(name);
	is_finding = false;
	return p;
}

#define MEMORY(name) ((__typeof__(&name))(uintptr_t)({ static _Atomic(void *) next; find(&next, #name); }))

void *malloc(size_t size)
{
	__typeof__(&malloc) next;

	if (FAILS(KIND_MEMORY))
		return NULL;
	next = MEMORY(malloc);
	return next ? next(size) : from_early(size);
}

void *calloc(size_t n, size_t size)
{
	__typeof__(&calloc) next;

	if (FAILS(KIND_MEMORY))
		return NULL;
	next = MEMORY(calloc);
	return next ? next(n, size) : from_early(n * size);
}

void *realloc(void *old, size_t size)
{
	__typeof__(&realloc) next;
	void *p;

	if (FAILS(KIND_MEMORY))
		return NULL;
	next = MEMORY(realloc);
	if (next && !is_early(old))
		return next(old, size);
	p = from_early(size);
	return p && old ? memcpy(p, old, size) : p;
}

void free(void *p)
{
	__typeof__(&free) next = MEMORY(free);

	if (next && !is_early(p))
		next(p);
}

char *strdup(const char *s)
{
	size_t size = strlen(s) + 1;
	char *p = FAILS(KIND_MEMORY) ? NULL : MEMORY(malloc)(size);

	return p ? memcpy(p, s, size) : NULL;
}

char *strndup(const char *s, size_t max)
{
	size_t len = strnlen(s, max);
	char *p = FAILS(KIND_MEMORY) ? NULL : MEMORY(malloc)(len + 1);

	if (p) {
		memcpy(p, s, len);
		p[len] = '\0';
	}
	return p;
}

/* In a tracer only sanitizers ask this, in each new thread, and do not go on without an answer, which takes memory. */
int pthread_getattr_np(pthread_t thread, pthread_attr_t *attr)
{
	bool was = inside;
	int err;

	inside = was || !order->from[0];
	err = NEXT(pthread_getattr_np)(thread, attr);
	inside = was;
	return err;
}

/* --- the others: result, name, parameters, what is handed on, what a failure returns ----------------------- */

#define FAULT(k, type, name, params, args, failure) \
	type name params { return FAILS(k) ? failure : NEXT(name) args; }

FAULT(KIND_MAP, void *, mmap, (void *p, size_t n, int prot, int flags, int fd, off_t off), (p, n, prot, flags, fd, off), MAP_FAILED)
FAULT(KIND_MAP, void *, mmap64, (void *p, size_t n, int prot, int flags, int fd, off64_t off), (p, n, prot, flags, fd, off),
      MAP_FAILED)
FAULT(KIND_MEMFD, int, memfd_create, (const char *name, unsigned int flags), (name, flags), -1)
FAULT(KIND_OPEN, DIR *, opendir, (const char *path), (path), NULL)
FAULT(KIND_OPEN, FILE *, fopen, (const char *path, const char *mode), (path, mode), NULL)
FAULT(KIND_OPEN, FILE *, fopen64, (const char *path, const char *mode), (path, mode), NULL)
FAULT(KIND_OPEN, FILE *, fdopen, (int fd, const char *mode), (fd, mode), NULL)
FAULT(KIND_VM, ssize_t, process_vm_readv,
      (pid_t pid, const struct iovec *l, unsigned long nl, const struct iovec *r, unsigned long nr, unsigned long flags),
      (pid, l, nl, r, nr, flags), -1)
FAULT(KIND_VM, ssize_t, process_vm_writev,
      (pid_t pid, const struct iovec *l, unsigned long nl, const struct iovec *r, unsigned long nr, unsigned long flags),
      (pid, l, nl, r, nr, flags), -1)
FAULT(KIND_FORK, pid_t, fork, (void), (), -1)
FAULT(KIND_SOCKET, int, socket, (int domain, int type, int protocol), (domain, type, protocol), -1)
FAULT(KIND_SOCKET, int, socketpair, (int domain, int type, int protocol, int fds[2]), (domain, type, protocol, fds), -1)
FAULT(KIND_SOCKET, int, bind, (int fd, const struct sockaddr *a, socklen_t n), (fd, a, n), -1)
FAULT(KIND_SOCKET, int, connect, (int fd, const struct sockaddr *a, socklen_t n), (fd, a, n), -1)
FAULT(KIND_SOCKET, int, listen, (int fd, int n), (fd, n), -1)
FAULT(KIND_SOCKET, int, accept4, (int fd, struct sockaddr *a, socklen_t *n, int flags), (fd, a, n, flags), -1)
FAULT(KIND_SOCKET, int, setsockopt, (int fd, int level, int what, const void *value, socklen_t n), (fd, level, what, value, n), -1)
FAULT(KIND_SEND, ssize_t, send, (int fd, const void *p, size_t n, int flags), (fd, p, n, flags), -1)
FAULT(KIND_SEND, ssize_t, sendmsg, (int fd, const struct msghdr *m, int flags), (fd, m, flags), -1)
FAULT(KIND_RECEIVE, ssize_t, recv, (int fd, void *p, size_t n, int flags), (fd, p, n, flags), -1)
FAULT(KIND_RECEIVE, ssize_t, recvmsg, (int fd, struct msghdr *m, int flags), (fd, m, flags), -1)
FAULT(KIND_POLL, int, poll, (struct pollfd *p, nfds_t n, int ms), (p, n, ms), -1)
FAULT(KIND_POLL, int, epoll_wait, (int fd, struct epoll_event *e, int n, int ms), (fd, e, n, ms), -1)
FAULT(KIND_DESCRIPTOR, int, epoll_create1, (int flags), (flags), -1)
FAULT(KIND_DESCRIPTOR, int, epoll_ctl, (int fd, int op, int of, struct epoll_event *e), (fd, op, of, e), -1)
FAULT(KIND_DESCRIPTOR, int, eventfd, (unsigned int n, int flags), (n, flags), -1)
FAULT(KIND_DESCRIPTOR, int, pipe, (int fds[2]), (fds), -1)
FAULT(KIND_DESCRIPTOR, int, pipe2, (int fds[2], int flags), (fds, flags), -1)
FAULT(KIND_DESCRIPTOR, int, dup, (int fd), (fd), -1)
FAULT(KIND_DESCRIPTOR, int, dup2, (int fd, int to), (fd, to), -1)
FAULT(KIND_DESCRIPTOR, int, dup3, (int fd, int to, int flags), (fd, to, flags), -1)
FAULT(KIND_DESCRIPTOR, int, signalfd, (int fd, const sigset_t *set, int flags), (fd, set, flags), -1)
FAULT(KIND_DESCRIPTOR, int, timerfd_create, (int clock, int flags), (clock, flags), -1)
FAULT(KIND_CONTROL, int, ftruncate, (int fd, off_t n), (fd, n), -1)
FAULT(KIND_CONTROL, int, ftruncate64, (int fd, off64_t n), (fd, n), -1)
FAULT(KIND_CONTROL, int, fallocate64, (int fd, int mode, off64_t off, off64_t n), (fd, mode, off, n), -1)
FAULT(KIND_CONTROL, int, madvise, (void *p, size_t n, int advice), (p, n, advice), -1)
FAULT(KIND_CONTROL, char *, realpath, (const char *path, char *to), (path, to), NULL)
FAULT(KIND_STAT, int, fstat, (int fd, struct stat *s), (fd, s), -1)
FAULT(KIND_STAT, int, fstat64, (int fd, struct stat64 *s), (fd, s), -1)
FAULT(KIND_STAT, int, stat64, (const char *path, struct stat64 *s), (path, s), -1)
FAULT(KIND_STAT, int, fstatfs64, (int fd, struct statfs64 *s), (fd, s), -1)
FAULT(KIND_STAT, ssize_t, readlink, (const char *path, char *to, size_t n), (path, to, n), -1)

/* A socket always has its cookie, by which the agent knows what it may close; and a connected one who is at its other end. */
int getsockopt(int fd, int level, int what, void *value, socklen_t *n)
{
	if (!(level == SOL_SOCKET && (what == SO_COOKIE || what == SO_PEERCRED)) && FAILS(KIND_SOCKET))
		return -1;
	return NEXT(getsockopt)(fd, level, what, value, n);
}

/* These return what went wrong. */
FAULT(KIND_THREAD, int, pthread_create, (pthread_t *t, const pthread_attr_t *attr, void *(*run)(void *), void *arg),
      (t, attr, run, arg), order->error)
FAULT(KIND_FORK, int, posix_spawnp, (pid_t *pid, const char *file, const posix_spawn_file_actions_t *actions,
      const posix_spawnattr_t *attr, char *const argv[], char *const envp[]), (pid, file, actions, attr, argv, envp), order->error)

/* --- those that a short count can be had from --------------------------------------------------------------- */

#define SHORT(k, type, name, params, args, n) \
	type name params \
	{ \
		bool this = FAILS(k); \
		if (this && !order->is_short) \
			return -1; \
		if (this && n) \
			n = 1; \
		return NEXT(name) args; \
	}

SHORT(KIND_READ, ssize_t, read, (int fd, void *p, size_t n), (fd, p, n), n)
SHORT(KIND_READ, ssize_t, pread, (int fd, void *p, size_t n, off_t off), (fd, p, n, off), n)
SHORT(KIND_READ, ssize_t, pread64, (int fd, void *p, size_t n, off64_t off), (fd, p, n, off), n)
SHORT(KIND_WRITE, ssize_t, write, (int fd, const void *p, size_t n), (fd, p, n), n)
SHORT(KIND_WRITE, ssize_t, pwrite64, (int fd, const void *p, size_t n, off64_t off), (fd, p, n, off), n)

/* --- those with more parameters at times --------------------------------------------------------------------- */

static long one_more(va_list ap)
{
	return va_arg(ap, long);
}

#define VARIADIC(k, type, name, fixed, args, failure) \
	type name fixed \
	{ \
		va_list ap; \
		long more; \
		if (FAILS(k)) \
			return failure; \
		va_start(ap, last); \
		more = one_more(ap); \
		va_end(ap); \
		return NEXT(name) args; \
	}

VARIADIC(KIND_OPEN, int, open, (const char *path, int last, ...), (path, last, more), -1)
VARIADIC(KIND_OPEN, int, open64, (const char *path, int last, ...), (path, last, more), -1)
VARIADIC(KIND_OPEN, int, openat, (int dir, const char *path, int last, ...), (dir, path, last, more), -1)
VARIADIC(KIND_OPEN, int, openat64, (int dir, const char *path, int last, ...), (dir, path, last, more), -1)
VARIADIC(KIND_CONTROL, int, ioctl, (int fd, unsigned long last, ...), (fd, last, more), -1)
VARIADIC(KIND_CONTROL, int, fcntl, (int fd, int last, ...), (fd, last, more), -1)
VARIADIC(KIND_CONTROL, int, fcntl64, (int fd, int last, ...), (fd, last, more), -1)

long ptrace(enum __ptrace_request request, ...)
{
	va_list ap;
	pid_t pid;
	void *addr, *data;

	if (FAILS(KIND_PTRACE))
		return -1;
	va_start(ap, request);
	pid = va_arg(ap, pid_t);
	addr = va_arg(ap, void *);
	data = va_arg(ap, void *);
	va_end(ap);
	return NEXT(ptrace)(request, pid, addr, data);
}

static int kind_of(long number)
{
	switch (number) {
	case SYS_bpf:
		return KIND_BPF;
	case SYS_perf_event_open:
		return KIND_PERF;
	case SYS_pidfd_open:
	case SYS_pidfd_getfd:
		return KIND_DESCRIPTOR;
	case SYS_process_vm_readv:
	case SYS_process_vm_writev:
		return KIND_VM;
	case SYS_openat:
	case SYS_openat2:
		return KIND_OPEN;
	case SYS_memfd_create:
		return KIND_MEMFD;
	case SYS_fcntl:
	case SYS_membarrier:
		return KIND_CONTROL;
	default:
		return KIND_NONE;
	}
}

long syscall(long number, ...)
{
	va_list ap;
	long a[6];
	int i, k = kind_of(number);

	if (k && FAILS(k))
		return -1;
	va_start(ap, number);
	for (i = 0; i < 6; i++)
		a[i] = va_arg(ap, long);
	va_end(ap);
	return NEXT(syscall)(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}
