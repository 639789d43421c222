/*
 * Chains of calls on x86-64.
 *
 * The frame is the kernel's struct rt_sigframe, and the vector registers are its XSAVE area, with the two magic
 * numbers that tell rt_sigreturn that there are more than the old 512 bytes (arch/x86/include/uapi/asm/
 * sigcontext.h, struct _fpx_sw_bytes).  A frame without that area resets the vector registers for the call.
 *
 * The tile registers of AMX are omitted unless in use: only then does the kernel count them among a thread's registers.
 */
#include "arch/remote.h"

#include <asm/prctl.h>
#include <cpuid.h>
#include <elf.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/user.h>

enum {
	RED_ZONE = 128,
	FX_SW = 464,			/* bytes for software in the FXSAVE area; ptrace puts XCR0 in the first 8 */
	XSTATE_BV = 512,		/* the XSAVE header: which components are in use */
	XSTATE_MIN = 512 + 64,
	XFEATURE_TILES = 18,
	MAGIC1 = 0x46505853, MAGIC2 = 0x46505845,
	FP_ALIGN = 64,
	USER_CS = 0x33,
	NO_ALTSTACK = 0x10,		/* invalid ss_flags, so that rt_sigreturn does not change the alternate stack */
	XSTATE_MAX = 16384,
};

/* Internal results of an interrupted system call (include/linux/errno.h), visible only to tracers. */
enum { ERESTARTSYS = 512, ERESTARTNOINTR, ERESTARTNOHAND, ERESTART_RESTARTBLOCK = 516 };

struct frame {
	uint64_t restorer;
	uint64_t flags, link;
	struct { uint64_t sp; uint32_t flags, pad; uint64_t size; } altstack;
	uint64_t r8, r9, r10, r11, r12, r13, r14, r15, di, si, bp, bx, dx, ax, cx, sp, ip, eflags;
	uint16_t cs, gs, fs, ss;
	uint64_t err, trapno, oldmask, cr2, fp, reserved[8];
	uint64_t sigmask;
	uint64_t pad;
};

_Static_assert(sizeof(struct frame) == 320 && offsetof(struct frame, fp) == 8 + 40 + 184, "the kernel's layout");

enum { UC_FP_XSTATE = 1, UC_SIGCONTEXT_SS = 2, UC_STRICT_RESTORE_SS = 4 };

struct remote_found {
	struct user_regs_struct regs;
	uint64_t sigmask;
	size_t fp_len;			/* bytes that put_fp writes, without the last magic number */
	uint64_t features;
	uint8_t fp[XSTATE_MAX];
};

/* mov $15,%rax; syscall */
static const uint8_t restorer[] = { 0x48, 0xc7, 0xc0, SYS_rt_sigreturn, 0, 0, 0, 0x0f, 0x05 };

static struct remote_thread to_thread(const struct user_regs_struct *r)
{
	return (struct remote_thread){
		.pc = r->rip, .sp = r->rsp, .tls = r->fs_base, .is_native = r->cs == USER_CS,
		.nr = (long)r->orig_rax, .result = (long)r->rax,
		.arg = { r->rdi, r->rsi, r->rdx, r->r10, r->r8, r->r9 },
	};
}

static int look(pid_t tid, struct remote_thread *ret)
{
	struct user_regs_struct r;

	if (ptrace(PTRACE_GETREGS, tid, NULL, &r))
		return -errno;
	*ret = to_thread(&r);
	return 0;
}

/* The end of the components @features in an XSAVE area of the standard format (Intel SDM, volume 1, 13.4). */
static size_t xsave_end(uint64_t features)
{
	size_t end = XSTATE_MIN;
	unsigned int size, off, c, d, i;

	for (i = 2; i < 63; i++)
		if (features >> i & 1 && __get_cpuid_count(0xd, i, &size, &off, &c, &d) && off + size > end)
			end = off + size;
	return end;
}

static int save_fp(pid_t tid, struct remote_found *f)
{
	struct iovec io = { f->fp, sizeof(f->fp) };
	uint64_t in_use;

	if (ptrace(PTRACE_GETREGSET, tid, (void *)NT_X86_XSTATE, &io))
		return -errno;
	if (io.iov_len < XSTATE_MIN || io.iov_len == sizeof(f->fp))
		return -ENOTSUP;
	memcpy(&f->features, f->fp + FX_SW, sizeof(f->features));
	memcpy(&in_use, f->fp + XSTATE_BV, sizeof(in_use));
	if (!(in_use >> XFEATURE_TILES & 1))
		f->features &= ~(1ull << XFEATURE_TILES);
	f->fp_len = xsave_end(f->features);
	return f->fp_len <= io.iov_len ? 0 : -ENOTSUP;
}

static int save(pid_t tid, struct remote_found **ret, size_t *fp_len, size_t *fp_align)
{
	struct remote_found *f = calloc(1, sizeof(*f));
	int err;

	if (!f)
		return -ENOMEM;
	if (ptrace(PTRACE_GETREGS, tid, NULL, &f->regs) ||
	    ptrace(PTRACE_GETSIGMASK, tid, (void *)sizeof(f->sigmask), &f->sigmask)) {
		err = -errno;
		goto fail;
	}
	err = save_fp(tid, f);
	if (err)
		goto fail;
	*fp_len = f->fp_len + sizeof(uint32_t);
	*fp_align = FP_ALIGN;
	*ret = f;
	return 0;
fail:
	free(f);
	return err;
}

static void free_found(struct remote_found *f)
{
	free(f);
}

static void put_fp(const struct remote_found *f, void *to)
{
	const uint32_t magic2 = MAGIC2;
	struct { uint32_t magic1, extended_size; uint64_t features; uint32_t size; } sw = {
		MAGIC1, (uint32_t)(f->fp_len + sizeof(magic2)), f->features, (uint32_t)f->fp_len,
	};

	memcpy(to, f->fp, f->fp_len);
	memset((char *)to + FX_SW, 0, 512 - FX_SW);
	memcpy((char *)to + FX_SW, &sw, 20);
	memcpy((char *)to + f->fp_len, &magic2, sizeof(magic2));
}

static void put_call(const struct remote_found *f, void *to, const struct remote_call *c, uint64_t at_restorer,
		     uint64_t next)
{
	struct frame fr = {
		.restorer = at_restorer, .flags = UC_SIGCONTEXT_SS | UC_STRICT_RESTORE_SS, .altstack.flags = NO_ALTSTACK,
		.di = c->arg[0], .si = c->arg[1], .dx = c->arg[2], .cx = c->arg[3], .r8 = c->arg[4], .r9 = c->arg[5],
		.sp = next, .ip = c->fn, .eflags = 0x202, .sigmask = remote_sigmask(c->unblocked),
		.cs = (uint16_t)f->regs.cs, .ss = (uint16_t)f->regs.ss, .gs = (uint16_t)f->regs.gs,
		.fs = (uint16_t)f->regs.fs,
	};

	memcpy(to, &fr, sizeof(fr));
}

/*
 * A call that waits with the kernel's restart block cannot continue with its remaining time, because the block was
 * used.  It is restarted if its timeout is absolute, or if the program could not learn that it was interrupted; it ends
 * with EINTR if the program can find out the remaining time.
 */
static bool again_after_block(const struct remote_thread *t)
{
	enum { FUTEX_CMD = 0x7f, FUTEX_WAIT_BITSET = 9 };

	switch (t->nr) {
	case SYS_futex:
		return (t->arg[1] & FUTEX_CMD) == FUTEX_WAIT_BITSET;
	case SYS_nanosleep:
		return t->arg[1] == 0;
	case SYS_clock_nanosleep:
		return t->arg[3] == 0;
	default:
		return false;
	}
}

static bool is_epoll(const struct remote_thread *t)
{
	return t->nr == SYS_epoll_wait || t->nr == SYS_epoll_pwait;
}

/* What happens to an interrupted call when no handler runs, as in the kernel's arch_do_signal_or_restart. */
static enum { KEEP, AGAIN, INTERRUPTED } restart(const struct remote_thread *t)
{
	if (t->nr < 0)
		return KEEP;
	switch (-t->result) {
	case ERESTARTSYS:
	case ERESTARTNOINTR:
	case ERESTARTNOHAND:
		return AGAIN;
	case ERESTART_RESTARTBLOCK:
		return again_after_block(t) ? AGAIN : INTERRUPTED;
	case EINTR:	/* these calls are not restarted even after a mere stop (signal(7)) */
		return !is_epoll(t) ? KEEP : (int)t->arg[3] < 0 ? AGAIN : INTERRUPTED;
	default:
		return KEEP;
	}
}

static bool ends_call(const struct remote_thread *t)
{
	return restart(t) == INTERRUPTED;
}

static void put_found(const struct remote_found *f, void *to, uint64_t at_restorer, uint64_t fp_at)
{
	struct user_regs_struct r = f->regs;
	struct remote_thread t = to_thread(&r);
	struct frame fr;

	switch (restart(&t)) {
	case AGAIN:
		r.rax = r.orig_rax;
		r.rip -= 2;		/* syscall */
		break;
	case INTERRUPTED:
		r.rax = (unsigned long)-EINTR;
		break;
	case KEEP:
		break;
	}
	fr = (struct frame){
		.restorer = at_restorer, .flags = UC_FP_XSTATE | UC_SIGCONTEXT_SS | UC_STRICT_RESTORE_SS,
		.altstack.flags = NO_ALTSTACK,
		.r8 = r.r8, .r9 = r.r9, .r10 = r.r10, .r11 = r.r11, .r12 = r.r12, .r13 = r.r13, .r14 = r.r14,
		.r15 = r.r15, .di = r.rdi, .si = r.rsi, .bp = r.rbp, .bx = r.rbx, .dx = r.rdx, .ax = r.rax, .cx = r.rcx,
		.sp = r.rsp, .ip = r.rip, .eflags = r.eflags, .cs = (uint16_t)r.cs, .gs = (uint16_t)r.gs,
		.fs = (uint16_t)r.fs, .ss = (uint16_t)r.ss, .fp = fp_at, .sigmask = f->sigmask,
	};
	memcpy(to, &fr, sizeof(fr));
}

static int go(pid_t tid, const struct remote_found *f, uint64_t at_restorer, uint64_t frame)
{
	struct user_regs_struct r = f->regs;
	uint64_t mask = remote_sigmask(0);

	r.rip = at_restorer;
	r.rsp = frame + sizeof(uint64_t);	/* as if a function had returned */
	r.orig_rax = (unsigned long)-1;		/* no call to restart */
	if (ptrace(PTRACE_SETREGS, tid, NULL, &r))
		return -errno;
	/*
	 * Block pending signals until after the chain: a handler that ran now would not interrupt the call that is
	 * restarted later.  The last frame restores the thread's own mask.
	 */
	ptrace(PTRACE_SETSIGMASK, tid, (void *)sizeof(mask), &mask);
	return 0;
}

static int set_sp(pid_t tid, uint64_t sp)
{
	return ptrace(PTRACE_POKEUSER, tid, (void *)offsetof(struct user_regs_struct, rsp), (void *)(uintptr_t)sp) ? -errno : 0;
}

static int put_back(pid_t tid, const struct remote_found *f)
{
	struct user_regs_struct r = f->regs;
	struct remote_thread t = to_thread(&r);

	if (restart(&t) == AGAIN)
		r.rax = (unsigned long)-ERESTARTNOHAND;
	return ptrace(PTRACE_SETREGS, tid, NULL, &r) ? -errno : 0;
}

static int end_call(pid_t tid)
{
	struct user_regs_struct r;

	if (ptrace(PTRACE_GETREGS, tid, NULL, &r))
		return -errno;
	r.rax = (unsigned long)-EINTR;
	return ptrace(PTRACE_SETREGS, tid, NULL, &r) ? -errno : 0;
}

static bool is_at(const struct remote_thread *t, uint64_t frame)
{
	return t->nr == SYS_rt_sigreturn && t->sp == frame + sizeof(uint64_t);
}

static bool errno_at(const uint8_t *code, size_t len, uint64_t pc, uint64_t tls, uint64_t *ret, uint64_t *indirect)
{
	static const uint8_t endbr[] = { 0xf3, 0x0f, 0x1e, 0xfa };
	static const uint8_t mov_got[] = { 0x48, 0x8b, 0x05 };				/* mov disp32(%rip),%rax */
	static const uint8_t add_fs[] = { 0x64, 0x48, 0x03, 0x04, 0x25, 0, 0, 0, 0, 0xc3 };	/* add %fs:0,%rax; ret */
	static const uint8_t mov_fs[] = { 0x64, 0x48, 0x8b, 0x04, 0x25, 0, 0, 0, 0 };	/* mov %fs:0,%rax */
	static const uint8_t add_imm[] = { 0x48, 0x83, 0xc0 };				/* add $imm8,%rax */
	static const uint8_t add_imm32[] = { 0x48, 0x05 };				/* add $imm32,%rax */
	int32_t v;

	*indirect = 0;
	if (len >= sizeof(endbr) && !memcmp(code, endbr, sizeof(endbr))) {
		code += sizeof(endbr);
		len -= sizeof(endbr);
		pc += sizeof(endbr);
	}
	if (len < 17)
		return false;
	if (!memcmp(code, mov_got, sizeof(mov_got)) && !memcmp(code + 7, add_fs, sizeof(add_fs))) {
		memcpy(&v, code + 3, sizeof(v));
		*indirect = pc + 7 + (uint64_t)(int64_t)v;
		*ret = tls;
		return true;
	}
	if (memcmp(code, mov_fs, sizeof(mov_fs)))
		return false;
	if (!memcmp(code + 9, add_imm, sizeof(add_imm)) && code[13] == 0xc3) {
		*ret = tls + (uint64_t)(int64_t)(int8_t)code[12];
		return true;
	}
	memcpy(&v, code + 11, sizeof(v));
	*ret = tls + (uint64_t)(int64_t)v;
	return !memcmp(code + 9, add_imm32, sizeof(add_imm32)) && code[15] == 0xc3;
}

/* Behind it are uc_flags, of which the kernel sets some, and uc_link, which it clears (setup_rt_frame() in arch/x86/kernel/signal_64.c). */
static bool is_signal_frame(const uint64_t *word, size_t n)
{
	enum { UC_FLAGS = UC_FP_XSTATE | UC_SIGCONTEXT_SS | UC_STRICT_RESTORE_SS };

	return n < 3 || (word[1] && !(word[1] & ~(uint64_t)UC_FLAGS) && !word[2]);
}

static const struct arch_remote remote = {
	.restorer = restorer, .restorer_len = sizeof(restorer), .red_zone = RED_ZONE, .frame = sizeof(struct frame),
	.frame_written = sizeof(struct frame), .frame_len = sizeof(struct frame), .frame_mod = 8, .tls_points_back = true,
	.arg0 = offsetof(struct frame, di), .arg0_before = 16,
	.look = look, .save = save, .free = free_found, .put_fp = put_fp, .put_call = put_call, .put_found = put_found,
	.ends_call = ends_call, .is_signal_frame = is_signal_frame,
	.go = go, .set_sp = set_sp, .put_back = put_back, .end_call = end_call, .is_at = is_at, .errno_at = errno_at,
};

const struct arch_remote *arch_remote(void)
{
	return &remote;
}
