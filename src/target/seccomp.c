#include "target/seccomp.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "abi/calls.h"
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

enum { CALLS_PRIVATE = MAP_PRIVATE | MAP_ANONYMOUS, CALLS_FD = 500 };
#define CALLS_CWD ((uint64_t)AT_FDCWD)
#define CALLS_THREAD (CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM | CLONE_SETTLS |	\
		      CLONE_PARENT_SETTID | CLONE_CHILD_CLEARTID)

enum { NEED = 0, MUSL = 1 << 30, MEMORY = ABI_CALLS_MEMORY, CODE = ABI_CALLS_CODE, SIGNAL = ABI_CALLS_SIGNAL,
       NAME = ABI_CALLS_NAME, FOLDER = ABI_CALLS_FOLDER, BARRIER = ABI_CALLS_BARRIER, OPENED = ABI_CALLS_OPENED };

static const struct call {
	const char *name;
	int nr;
	uint32_t group;		/* of optional calls; NEED: needed; MUSL: needed with musl */
	uint64_t args[6];
} calls[] = {
#define CALL(name, need, by, ...) { #name, SYS_##name, need, { __VA_ARGS__ } },
#include "abi/calls.def"
#undef CALL
};

/* --- filters ------------------------------------------------------------------------------------------- */

/* Execute the arithmetic instruction @code.  False: unknown, or division by 0. */
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

	for (uint32_t pc = 0; pc < n; pc++) {	/* all jumps are forward */
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

/* Would a call for which the filter returns @action kill the process?  A trap would: it may have no handler. */
static bool is_fatal(uint32_t action)
{
	switch (action & SECCOMP_RET_ACTION_FULL) {
	case SECCOMP_RET_ALLOW:
	case SECCOMP_RET_ERRNO:
	case SECCOMP_RET_TRACE:		/* the call fails if there is no such tracer */
	case SECCOMP_RET_LOG:
	case SECCOMP_RET_USER_NOTIF:
		return false;
	default:			/* unknown actions kill, too */
		return true;
	}
}

/*
 * Iterate over the filters of a thread: get filter *@k, on the heap, and its length *@n, and increment *@k.  NULL and
 * errno ENOENT: there are no more; NULL and another error: unreadable.
 */
static struct sock_filter *next_filter(pid_t tid, unsigned long *k, uint32_t *n)
{
	long len = ptrace(PTRACE_SECCOMP_GET_FILTER, tid, (void *)*k, NULL);
	struct sock_filter *filter = len > 0 ? calloc((size_t)len, sizeof(*filter)) : NULL;

	if (filter && ptrace(PTRACE_SECCOMP_GET_FILTER, tid, (void *)*k, filter) != len) {
		free(filter);
		return NULL;
	}
	*n = (uint32_t)len;
	*k += 1;
	return filter;
}

bool seccomp_kills_restart(pid_t tid)
{
	const struct seccomp_data data = { .nr = SYS_restart_syscall, .arch = (uint32_t)ARCH };
	struct sock_filter *filter;
	unsigned long k = 0;
	bool kills = false;
	uint32_t n;

	while (!kills && (filter = next_filter(tid, &k, &n))) {
		kills = is_fatal(seccomp_run(filter, n, &data));
		free(filter);
	}
	return kills;
}

/* The first needed call that is fatal, or NULL; adds to *@forbidden the groups of fatal optional calls. */
static const struct call *judge(const struct sock_filter *filter, uint32_t n, bool is_musl, uint32_t *forbidden)
{
	for (size_t k = 0; k < sizeof(calls) / sizeof(calls[0]); k++) {
		const struct call *c = &calls[k];
		struct seccomp_data data = { .nr = c->nr, .arch = (uint32_t)ARCH };

		if (c->group == MUSL && !is_musl)
			continue;
		memcpy(data.args, c->args, sizeof(data.args));
		if (!is_fatal(seccomp_run(filter, n, &data)))
			continue;
		if (c->group == NEED || c->group == MUSL)
			return c;
		*forbidden |= c->group;
	}
	return NULL;
}

int seccomp_forbids_memory(pid_t pid, pid_t tid)
{
	static const int copies[] = { SYS_process_vm_readv, SYS_process_vm_writev };
	struct sock_filter *filter;
	unsigned long nr = 0;
	uint32_t n;

	while ((filter = next_filter(tid, &nr, &n))) {
		bool bad = false;

		for (size_t i = 0; i < sizeof(copies) / sizeof(*copies); i++) {
			const struct seccomp_data data = { .nr = copies[i], .arch = (uint32_t)ARCH,
							   .args = { (uint64_t)pid, 4096, 1, 4096, 1, 0 } };
			uint32_t action = seccomp_run(filter, n, &data) & SECCOMP_RET_ACTION_FULL;

			bad |= action != SECCOMP_RET_ALLOW && action != SECCOMP_RET_LOG && action != SECCOMP_RET_ERRNO;
		}
		free(filter);
		if (bad)
			return 1;
	}
	return errno == ENOENT ? 0 : -EACCES;
}

static int refuse(pid_t pid, const char *call, struct strbuf *why)
{
	return target_fail(why, -EPERM, "process %d has limited its system calls (seccomp): it would not survive %s(), which dtap's"
			   " agent needs", (int)pid, call);
}

/* The number in field @name of @status; -1: there is none (Seccomp_filters exists since Linux 5.9). */
static long status_number(const char *status, const char *name)
{
	const char *field = proc_status_field(status, name);

	return field ? strtol(field, NULL, 10) : -1;
}

/* Has this process filters, and as many as @status tells of? */
static bool are_own(const char *status)
{
	struct strbuf own = { 0 };
	bool ret = !proc_read(getpid(), "status", &own) && status_number(own.s, "Seccomp") > 0 &&
		   status_number(own.s, "Seccomp_filters") == status_number(status, "Seccomp_filters");

	strbuf_fini(&own);
	return ret;
}

/*
 * This process may not read the filters.  If they are those of a container, this process has them, too, and survives
 * with them; all that can be compared is their number.
 */
static int check_unread(pid_t pid, const char *status, struct strbuf *why)
{
	if (status_number(status, "Seccomp") <= 0 || are_own(status))
		return 0;
	return target_fail(why, -EPERM, "process %d has limited its system calls (seccomp), and only root (CAP_SYS_ADMIN) may see "
			   "whether it would survive those of dtap's agent", (int)pid);
}

int seccomp_check(pid_t pid, pid_t tid, const char *status, bool is_musl, uint32_t *forbidden, struct strbuf *why)
{
	const struct call *fatal = NULL;
	struct sock_filter *filter;
	unsigned long k = 0;
	uint32_t n;

	if (status_number(status, "Seccomp") == SECCOMP_MODE_STRICT)
		return refuse(pid, "mmap", why);
	while (!fatal && (filter = next_filter(tid, &k, &n))) {
		fatal = judge(filter, n, is_musl, forbidden);
		free(filter);
	}
	/* After the last filter the request fails with ENOENT. */
	if (!fatal && !(k && errno == ENOENT))
		return check_unread(pid, status, why);
	return fatal ? refuse(pid, fatal->name, why) : 0;
}
