/*
 * Is a thread at a point where it may call dlopen?  It may, unless it is inside malloc or the dynamic loader, whose
 * locks it could then hold.  Both are recognised by their code and their system calls:
 *
 * - In user mode they execute only their own code and the C library's, so a thread in other code is in neither of them.
 *   Three exceptions: a signal handler (recognised by the restorer as its return address); and, outside the
 *   interpreter's code, IFUNC resolvers and the unwinder's search of the loader's list (recognised by addresses of the
 *   loader's code among the top words of the stack; in the interpreter's frames such words are left over from earlier
 *   calls).
 * - Of the system calls in which a thread waits they use only futex, for their locks.  In glibc the expected value is
 *   then 2, which condition variables, semaphores and joins never use; in musl the value does not distinguish them.  A
 *   replaced allocator may also sleep.  glibc's setuid() and similar functions hold the lock of the list of stacks
 *   while they wait for all threads, on a futex on their own stack.  A call that the kernel restarts by itself
 *   (ERESTARTNOINTR: fork, clone) does not wait.  The loader's own system calls are in its own code.
 *
 * The loader calls the constructors of libraries, too, but allows them to call dlopen.
 */
#include "target/safepoint.h"

#include <errno.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>

/* Bytes of stack to search for a return address into the loader, and for that of a signal handler, which may call much. */
enum { NEAR = 2048, FAR = 16384 };

/*
 * Could the thread be about to make a system call of malloc's or the loader's?  They are not calls in which a thread waits.
 * malloc reads a single digit of a file of the kernel's (check_may_shrink_heap in glibc's sysdeps/unix/sysv/linux).
 */
static bool may_begin(const struct remote_thread *t)
{
	static const int nrs[] = { SYS_brk, SYS_mmap, SYS_munmap, SYS_mremap, SYS_mprotect, SYS_madvise, SYS_prctl, SYS_getrandom,
				   SYS_openat, SYS_close, SYS_fstat, SYS_newfstatat, SYS_pread64, SYS_rt_sigprocmask, SYS_set_robust_list,
				   SYS_membarrier, SYS_sched_yield, SYS_clone };

	for (size_t i = 0; i < sizeof(nrs) / sizeof(nrs[0]); i++)
		if (t->nr == nrs[i])
			return true;
	return t->nr == SYS_read && t->arg[2] == 1 && t->arg[1] - t->sp < NEAR;
}

/* Was a waiting system call interrupted?  ERESTARTSYS, ERESTARTNOHAND, ERESTART_RESTARTBLOCK (include/linux/errno.h) */
bool safepoint_is_waiting(const struct remote_thread *t)
{
	if (t->left && t->result != -EINTR && may_begin(t))
		return false;
	return t->nr >= 0 && (t->result == -512 || t->result == -514 || t->result == -516 || t->result == -EINTR);
}

static bool may_hold_lock(const struct guest *g, const struct remote_thread *t)
{
	enum { CMD = 0x7f, WAIT = 0, LOCK_PI = 6, WAIT_REQUEUE_PI = 11 };
	int cmd = (int)t->arg[1] & CMD;

	switch (t->nr) {
	case SYS_futex:
		if (g->is_musl || g->has_allocator || t->result == -EINTR)
			return true;
		if (cmd == WAIT && t->arg[0] >= t->sp && t->arg[0] - t->sp < NEAR)
			return true;
		return (cmd == WAIT && (uint32_t)t->arg[2] == 2) || (cmd >= LOCK_PI && cmd <= WAIT_REQUEUE_PI && cmd != 9 &&
								    cmd != 10);
	case SYS_nanosleep:
	case SYS_clock_nanosleep:
	case SYS_sched_yield:
		return g->has_allocator;
	default:
		return false;
	}
}

static bool has_own_tls(pid_t tid, const struct remote_thread *t)
{
	uint64_t head[3] = { 0 };
	struct iovec here = { head, sizeof(head) }, there = { (void *)(uintptr_t)t->tls, sizeof(head) };

	/* On x86-64 its first or third word points to itself, in glibc both (the TLS ABI of x86-64, and tcbhead_t). */
	return process_vm_readv(tid, &here, 1, &there, 1, 0) == sizeof(head) &&
	       (!arch_remote()->tls_points_back || head[0] == t->tls || head[2] == t->tls);
}

/* Do the top words of the stack contain a return address to the restorer or, near the top, into the loader? */
static bool is_called_back(const struct guest *g, pid_t tid, const struct remote_thread *t, enum guest_code code)
{
	uint64_t words[FAR / sizeof(uint64_t)], at = t->sp & ~7ull;
	const struct target_map *m = guest_map(&g->maps, at);
	struct iovec here = { words, sizeof(words) }, there = { (void *)(uintptr_t)at, sizeof(words) };
	bool by_loader = code != GUEST_PYTHON;
	ssize_t got;
	size_t n;

	if (!m || t->link == g->restorer || (by_loader && guest_code(g, t->link) == GUEST_LOADER))
		return true;
	if (m->end - at < sizeof(words))
		here.iov_len = there.iov_len = (size_t)(m->end - at);
	got = process_vm_readv(tid, &here, 1, &there, 1, 0);
	n = got < 0 ? 0 : (size_t)got / sizeof(uint64_t);
	for (size_t i = 0; i < n; i++)
		if ((words[i] == g->restorer && arch_remote()->is_signal_frame(words + i, n - i)) ||
		    (by_loader && i < NEAR / sizeof(uint64_t) && guest_code(g, words[i]) == GUEST_LOADER))
			return true;
	return got < 0;
}

const char *safepoint_refusal(const struct guest *g, pid_t tid, const struct remote_thread *t)
{
	enum guest_code code = guest_code(g, t->pc);

	if (!t->is_native)
		return "executes 32-bit code";
	if (!has_own_tls(tid, t))
		return "was not made by the C library";
	if (code == GUEST_NONE || code == GUEST_KERNEL)
		return "executes what is no file's code";
	if (code == GUEST_LOADER)
		return "is in the dynamic loader";
	if (code == GUEST_ALLOCATOR)
		return "is in the memory allocator";
	if (safepoint_is_waiting(t))
		return may_hold_lock(g, t) ? "waits for a lock in the C library" : NULL;
	if (code == GUEST_LIBC)
		return "is in the C library";
	return is_called_back(g, tid, t, code) ? "is in a signal handler or called by the dynamic loader" : NULL;
}
