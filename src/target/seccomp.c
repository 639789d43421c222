#include "target/seccomp.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>

#include "base/strbuf.h"
#include "target/priv.h"

#ifndef PTRACE_SECCOMP_GET_FILTER
#define PTRACE_SECCOMP_GET_FILTER 0x420c	/* Linux 4.4 */
#endif

#if defined(__x86_64__)
enum { ARCH = AUDIT_ARCH_X86_64 };
#elif defined(__aarch64__)
enum { ARCH = AUDIT_ARCH_AARCH64 };
#endif

enum { MMAP_PRIVATE = MAP_PRIVATE | MAP_ANONYMOUS, ANY_FD = 500 };
#define THREAD_FLAGS (CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM | CLONE_SETTLS |	\
		      CLONE_PARENT_SETTID | CLONE_CHILD_CLEARTID)

/*
 * What is called while the agent is brought in, by its thread, and at events: with arguments as they are then, as far as
 * filters look at them.
 */
static const struct call {
	const char *name;
	int nr;
	uint64_t args[6];
} calls[] = {
	{ "mmap", SYS_mmap, { 0, 4096, PROT_READ | PROT_WRITE, MMAP_PRIVATE, (uint64_t)-1 } },
	{ "mmap", SYS_mmap, { 0, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, ANY_FD } },
	{ "mmap", SYS_mmap, { 0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, ANY_FD } },
	{ "mprotect", SYS_mprotect, { 4096, 4096, PROT_READ | PROT_EXEC } },
	{ "munmap", SYS_munmap, { 4096, 4096 } },
	{ "madvise", SYS_madvise, { 4096, 4096, MADV_DONTDUMP } },
	{ "openat", SYS_openat, { (uint64_t)AT_FDCWD, 4096, O_RDONLY | O_CLOEXEC } },
	{ "read", SYS_read, { ANY_FD, 4096, 832 } },
	{ "lseek", SYS_lseek, { ANY_FD, 0, SEEK_END } },
	{ "close", SYS_close, { ANY_FD } },
	{ "fcntl", SYS_fcntl, { ANY_FD, F_DUPFD_CLOEXEC, ANY_FD } },
	{ "fcntl", SYS_fcntl, { ANY_FD, F_GET_SEALS } },
	{ "socketpair", SYS_socketpair, { AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, 4096 } },
	{ "getsockopt", SYS_getsockopt, { ANY_FD, SOL_SOCKET, SO_PEERCRED, 4096, 4096 } },
	{ "sendto", SYS_sendto, { ANY_FD, 4096, 1, MSG_NOSIGNAL | MSG_DONTWAIT } },
	{ "recvmsg", SYS_recvmsg, { ANY_FD, 4096, MSG_DONTWAIT | MSG_CMSG_CLOEXEC } },
#ifdef SYS_poll
	{ "poll", SYS_poll, { 4096, 2, (uint64_t)-1 } },
#else
	{ "ppoll", SYS_ppoll, { 4096, 2 } },
#endif
#ifdef SYS_clone3
	{ "clone3", SYS_clone3, { 4096, 88 } },
#endif
	{ "clone", SYS_clone, { THREAD_FLAGS, 4096, 4096, 4096, 4096 } },
	{ "set_robust_list", SYS_set_robust_list, { 4096, 24 } },
#ifdef SYS_rseq
	{ "rseq", SYS_rseq, { 4096, 32, 0, 0x53053053 } },
#endif
	{ "rt_sigprocmask", SYS_rt_sigprocmask, { SIG_SETMASK, 4096, 4096, 8 } },
	{ "futex", SYS_futex, { 4096, 128, 1 } },
	{ "exit", SYS_exit, { 0 } },
	{ "getpid", SYS_getpid, { 0 } },
	{ "gettid", SYS_gettid, { 0 } },
	{ "geteuid", SYS_geteuid, { 0 } },
	{ "tgkill", SYS_tgkill, { 2, 2, 0 } },
	{ "nanosleep", SYS_clock_nanosleep, { CLOCK_REALTIME, 0, 4096 } },
};

/* --- filters ------------------------------------------------------------------------------------------- */

/* Result of the operation of @code; false: it is none, or divides by 0. */
static bool calculate(uint16_t code, uint32_t *a, uint32_t v)
{
	switch (BPF_OP(code)) {
	case BPF_ADD: *a += v; return true;
	case BPF_SUB: *a -= v; return true;
	case BPF_MUL: *a *= v; return true;
	case BPF_OR: *a |= v; return true;
	case BPF_AND: *a &= v; return true;
	case BPF_XOR: *a ^= v; return true;
	case BPF_LSH: *a = v < 32 ? *a << v : 0; return true;
	case BPF_RSH: *a = v < 32 ? *a >> v : 0; return true;
	case BPF_NEG: *a = -*a; return true;
	case BPF_DIV: *a = v ? *a / v : 0; return v;
	default: return false;
	}
}

static bool jumps(uint16_t code, uint32_t a, uint32_t v)
{
	switch (BPF_OP(code)) {
	case BPF_JEQ: return a == v;
	case BPF_JGT: return a > v;
	case BPF_JGE: return a >= v;
	default: return a & v;		/* BPF_JSET */
	}
}

uint32_t seccomp_run(const struct sock_filter *filter, uint32_t n, const struct seccomp_data *call)
{
	uint32_t a = 0, x = 0, mem[BPF_MEMWORDS] = { 0 }, v;

	for (uint32_t pc = 0; pc < n; pc++) {	/* jumps lead forward only */
		const struct sock_filter *i = &filter[pc];

		v = BPF_SRC(i->code) == BPF_X ? x : i->k;
		switch (BPF_CLASS(i->code)) {
		case BPF_LD:
		case BPF_LDX:
			if (BPF_MODE(i->code) == BPF_ABS && i->k % 4 == 0 && i->k < sizeof(*call))
				memcpy(&v, (const char *)call + i->k, sizeof(v));
			else if (BPF_MODE(i->code) == BPF_MEM && i->k < BPF_MEMWORDS)
				v = mem[i->k];
			else if (BPF_MODE(i->code) == BPF_LEN)
				v = sizeof(*call);
			else if (BPF_MODE(i->code) == BPF_IMM)
				v = i->k;
			else
				return SECCOMP_RET_KILL_THREAD;
			*(BPF_CLASS(i->code) == BPF_LD ? &a : &x) = v;
			break;
		case BPF_ST:
		case BPF_STX:
			if (i->k >= BPF_MEMWORDS)
				return SECCOMP_RET_KILL_THREAD;
			mem[i->k] = BPF_CLASS(i->code) == BPF_ST ? a : x;
			break;
		case BPF_ALU:
			if (!calculate(i->code, &a, v))
				return SECCOMP_RET_KILL_THREAD;
			break;
		case BPF_JMP:
			pc += BPF_OP(i->code) == BPF_JA ? i->k : jumps(i->code, a, v) ? i->jt : i->jf;
			break;
		case BPF_RET:
			return BPF_RVAL(i->code) == BPF_A ? a : i->k;
		default:		/* BPF_MISC */
			*(BPF_MISCOP(i->code) == BPF_TAX ? &x : &a) = BPF_MISCOP(i->code) == BPF_TAX ? a : x;
		}
	}
	return SECCOMP_RET_KILL_THREAD;
}

/* --- threads ------------------------------------------------------------------------------------------- */

/* The first call that would end the process, or call a handler that it has for such calls. */
static const struct call *find_fatal(const struct sock_filter *filter, uint32_t n)
{
	for (size_t k = 0; k < sizeof(calls) / sizeof(calls[0]); k++) {
		struct seccomp_data data = { .nr = calls[k].nr, .arch = (uint32_t)ARCH };
		uint32_t action;

		memcpy(data.args, calls[k].args, sizeof(data.args));
		action = seccomp_run(filter, n, &data) & SECCOMP_RET_ACTION_FULL;
		if (action == SECCOMP_RET_KILL_PROCESS || action == SECCOMP_RET_KILL_THREAD || action == SECCOMP_RET_TRAP)
			return &calls[k];
	}
	return NULL;
}

int seccomp_check(pid_t pid, pid_t tid, struct strbuf *why)
{
	const struct call *fatal = NULL;

	for (unsigned long k = 0; !fatal; k++) {
		long n = ptrace(PTRACE_SECCOMP_GET_FILTER, tid, (void *)k, NULL);
		struct sock_filter *filter = n > 0 ? calloc((size_t)n, sizeof(*filter)) : NULL;

		if (!filter)
			break;
		if (ptrace(PTRACE_SECCOMP_GET_FILTER, tid, (void *)k, filter) == n)
			fatal = find_fatal(filter, (uint32_t)n);
		free(filter);
	}
	if (!fatal)
		return 0;
	return target_fail(why, -EPERM, "process %d has limited its system calls (seccomp): it would not survive %s(), which dtap's"
			   " agent needs", (int)pid, fatal->name);
}
