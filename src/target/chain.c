#include "target/chain.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/now.h"
#include "target/priv.h"

enum { PAGE = 4096 };

/* The stop mostly takes microseconds, during which the target is held up: do not sleep at first, and then not for long. */
int chain_wait(pid_t tid, int timeout_ms, int *status)
{
	enum { SPIN_US = 100, NAP_NS = 20000, NAP_MAX_NS = 500000 };
	uint64_t begin = now_us(), now = begin;
	struct timespec nap = { .tv_nsec = NAP_NS };
	pid_t r;

	for (;;) {
		r = waitpid(tid, status, WNOHANG | __WALL);
		if (r == tid)
			return WIFSTOPPED(*status) ? 0 : -ESRCH;
		if (r < 0 && errno != EINTR)
			return -ESRCH;
		now = now_us();
		if (now - begin > (uint64_t)timeout_ms * 1000)
			return -ETIMEDOUT;
		if (now - begin < SPIN_US) {
			sched_yield();
			continue;
		}
		nanosleep(&nap, NULL);
		if (nap.tv_nsec < NAP_MAX_NS)
			nap.tv_nsec += nap.tv_nsec / 4;
	}
}

/* --- memory --------------------------------------------------------------------------------------------- */

/* Use a descriptor: if another thread executes a program now, the new program's memory is not written to. */
static int copy(const struct chain *c, uint64_t addr, void *mem, size_t len, bool write)
{
	ssize_t n;

	do {
		n = write ? pwrite(c->mem_fd, mem, len, (off_t)addr) : pread(c->mem_fd, mem, len, (off_t)addr);
	} while (n < 0 && errno == EINTR);
	if (n < 0)
		return errno == EIO ? -EFAULT : -errno;
	return (size_t)n == len ? 0 : -EFAULT;
}

int chain_read(const struct chain *c, uint64_t addr, void *to, size_t len)
{
	return copy(c, addr, to, len, false);
}

int chain_write(const struct chain *c, uint64_t addr, const void *from, size_t len)
{
	return copy(c, addr, (void *)(uintptr_t)from, len, true);
}

/* --- layout --------------------------------------------------------------------------------------------- */

static uint64_t frame_at(const struct chain *c, unsigned int i)
{
	const struct arch_remote *arch = arch_remote();

	return i == c->n && arch->found_apart ? c->fp : c->base + i * arch->frame;
}

/*
 * Is there enough stack below @lowest_written, which itself must be mapped?  The first thread's stack grows when the
 * thread itself uses it, up to its limit, but not when another process writes there.
 */
static bool has_room(const struct chain *c, uint64_t lowest_written)
{
	const struct target_map *m = guest_map(&c->g->maps, c->at.sp);
	struct rlimit limit;
	uint64_t low;

	if (!m || !m->is_writable || m->is_shared || lowest_written < m->start)
		return false;
	low = m->start;
	if (!strcmp(m->path, "[stack]") && !prlimit(c->tid, RLIMIT_STACK, NULL, &limit) && limit.rlim_cur != RLIM_INFINITY)
		low = limit.rlim_cur < m->end ? m->end - limit.rlim_cur : 0;
	else if (!strcmp(m->path, "[stack]"))
		low = 0;
	if (low > m->start)
		low = m->start;
	return lowest_written - low >= CHAIN_ROOM;
}

int chain_init(struct chain *c, const struct guest *g, pid_t tid, unsigned int n)
{
	const struct arch_remote *arch = arch_remote();
	size_t fp_len, fp_align, frames, written;
	unsigned int i;
	char path[32];
	int err;

	*c = (struct chain){ .g = g, .tid = tid, .n = n };
	snprintf(path, sizeof(path), "/proc/%d/mem", (int)tid);
	c->mem_fd = open(path, O_RDWR | O_CLOEXEC);
	err = c->mem_fd < 0 ? -errno : arch->look(tid, &c->at);
	if (!err)
		err = arch->save(tid, &c->found, &fp_len, &fp_align);
	if (err)
		return err;
	c->data = (c->at.sp - arch->red_zone - CHAIN_DATA) & ~15ull;
	c->fp = (c->data - fp_len) & ~(uint64_t)(fp_align - 1);
	/*
	 * Put the frames in one page: a tracer that is killed while it writes to several pages may have written only a
	 * part of them.  Frame sizes are multiples of 16.
	 */
	frames = (arch->found_apart ? n - 1 : n) * arch->frame;		/* up to the last one's start */
	written = frames + arch->frame_written;
	c->base = ((c->fp - frames - arch->frame_len) & ~15ull) - arch->frame_mod;
	if (c->base / PAGE != (c->base + written - 1) / PAGE)
		c->base = (c->base + written) / PAGE * PAGE - written - arch->frame_mod;
	if (!has_room(c, c->base))
		return -ENOSPC;
	c->len = (size_t)(c->data + CHAIN_DATA - c->base);
	c->mem = calloc(1, c->len);
	if (!c->mem)
		return -ENOMEM;
	for (i = 0; i < n; i++)
		chain_set(c, i, NULL);
	arch->put_found(c->found, c->mem + (frame_at(c, n) - c->base), g->restorer, c->fp);
	arch->put_fp(c->found, c->mem + (c->fp - c->base));
	return 0;
}

void chain_fini(struct chain *c)
{
	if (!c->g)
		return;
	if (c->found)
		arch_remote()->free(c->found);
	if (c->mem_fd >= 0)
		close(c->mem_fd);
	free(c->mem);
	*c = (struct chain){ 0 };
}

void chain_set(struct chain *c, unsigned int i, const struct remote_call *call)
{
	const struct remote_call nothing = { .fn = c->g->swab, .arg = { c->data, c->data, 0 } };
	const struct arch_remote *arch = arch_remote();

	arch->put_call(c->found, c->mem + i * arch->frame, call ? call : &nothing, c->g->restorer, frame_at(c, i + 1));
	c->marks &= ~(1u << i);
}

/* Is SIGURG in the set of signals that @field shows?  Also if there is no such field. */
static bool has_urgent(const char *status, const char *field)
{
	const char *at = proc_status_field(status, field);

	return !at || strtoull(at, NULL, 16) >> (SIGURG - 1) & 1;
}

bool chain_may_mark(struct chain *c, const char *status)
{
	const char *seccomp = proc_status_field(status, "Seccomp");

	c->own_pid = proc_innermost_id(status, "NStgid", NULL);
	c->own_tid = proc_innermost_id(status, "NSpid", NULL);
	return c->own_pid > 0 && c->own_tid > 0 && !(seccomp && strtol(seccomp, NULL, 10)) &&
	       !has_urgent(status, "SigCgt") && !has_urgent(status, "SigBlk");
}

void chain_mark(struct chain *c, unsigned int i)
{
	const struct remote_call send = {
		.fn = c->g->syscall, .arg = { SYS_tgkill, (uint64_t)c->own_pid, (uint64_t)c->own_tid, SIGURG },
		.unblocked = 1ull << (SIGURG - 1),
	};

	chain_set(c, i, &send);
	c->marks |= 1u << i;
}

int chain_store(struct chain *c, unsigned int from)
{
	const struct arch_remote *arch = arch_remote();

	return chain_write(c, frame_at(c, from), c->mem + from * arch->frame,
			   (c->n - from - 1) * arch->frame + arch->frame_written);
}

uint64_t chain_arg0(const struct chain *c, unsigned int i)
{
	return frame_at(c, i) + arch_remote()->arg0;
}

void chain_put(struct chain *c, size_t off, const void *from, size_t len)
{
	memcpy(c->mem + (c->data - c->base) + off, from, len);
}

/* --- running -------------------------------------------------------------------------------------------- */

int chain_go(struct chain *c)
{
	int err = chain_write(c, c->base, c->mem, c->len);

	return err ? err : arch_remote()->go(c->tid, c->found, c->g->restorer, c->base);
}

int chain_again(struct chain *c, unsigned int i)
{
	return arch_remote()->go(c->tid, c->found, c->g->restorer, frame_at(c, i));
}

static bool is_fault(int sig)
{
	return sig == SIGSEGV || sig == SIGBUS || sig == SIGILL || sig == SIGFPE || sig == SIGTRAP || sig == SIGSYS;
}

/*
 * Has the thread, which entered or left a system call, reached the end of call @i, or, if @i is the number of calls,
 * returned to its original place?  1, 0, or a negative errno: unknown.
 */
static int has_come(const struct chain *c, unsigned int i)
{
	struct remote_thread t;
	int err = arch_remote()->look(c->tid, &t);

	if (err)
		return err;
	if (i < c->n)
		return arch_remote()->is_at(&t, frame_at(c, i + 1));
	return (t.nr < 0 || t.left) && t.sp == c->at.sp;	/* what rt_sigreturn leaves */
}

/* chain_wait() until @end, in us; what is to be done at @late is done. */
static int wait_until(struct chain *c, uint64_t late, uint64_t end, int *status)
{
	uint64_t now = now_us();
	int err = -ETIMEDOUT;

	if (c->late && late < end) {
		err = chain_wait(c->tid, now < late ? (int)((late - now) / 1000) : 0, status);
		if (err != -ETIMEDOUT)
			return err;
		c->late(c->late_ctx);
		c->late = NULL;
		now = now_us();
	}
	return chain_wait(c->tid, now < end ? (int)((end - now) / 1000) : 0, status);
}

int chain_run(struct chain *c, unsigned int i, int timeout_ms)
{
	bool is_mark = c->marks >> i & 1;
	uint64_t begin = now_us(), end = begin + (uint64_t)timeout_ms * 1000;
	int status, sig = 0, err, come;

	for (;;) {
		if (ptrace(is_mark ? PTRACE_CONT : PTRACE_SYSCALL, c->tid, NULL, (void *)(uintptr_t)sig))
			return -errno;
		err = wait_until(c, begin + CHAIN_LATE_MS * 1000, end, &status);
		if (err)
			return err;
		sig = WSTOPSIG(status);
		come = sig == (SIGTRAP | 0x80) ? has_come(c, i) : 0;
		if (come)
			return come > 0 ? 0 : come;
		if (sig == (SIGTRAP | 0x80) || status >> 16) {	/* a group-stop is reported again after the detach */
			sig = 0;
		} else if (sig == SIGURG && is_mark) {
			return chain_again(c, i + 1);	/* another one remains blocked until the end, and is ignored */
		} else if (is_fault(sig)) {
			arch_remote()->go(c->tid, c->found, c->g->restorer, frame_at(c, c->n));
			return -EFAULT;
		}
	}
}

int chain_finish(struct chain *c, int timeout_ms)
{
	int err = chain_run(c, c->n, timeout_ms), status;

	if (err)
		return err;
	/* Otherwise a later attempt would take the remains for the frames of a signal handler. */
	memset(c->mem, 0, c->len);
	chain_write(c, c->base, c->mem, c->len);
	if (ptrace(PTRACE_INTERRUPT, c->tid, NULL, NULL) || ptrace(PTRACE_CONT, c->tid, NULL, NULL))
		return -ESRCH;
	err = chain_wait(c->tid, timeout_ms, &status);
	if (!err && status >> 16 == PTRACE_EVENT_STOP)
		arch_remote()->put_back(c->tid, c->found);
	return err;
}
