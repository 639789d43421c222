/*
 * Chains of calls on aarch64.
 *
 * The frame is the kernel's struct rt_sigframe (arch/arm64/kernel/signal.c), of which rt_sigreturn reads the fields below
 * and then records up to an empty one.  It insists on the record of the vector registers, whose numbers it then takes as
 * they are: those of a call do not matter.  So the frames of calls overlap: each begins 336 bytes after the one before it,
 * in bytes of that one that are not read.  336 is the one distance at which no field of a frame meets another's and the
 * changing parts of CHAIN_MAX frames are in one page.  The last frame, whose bytes all matter, stands apart.
 *
 * The restorer is in the vDSO, or in musl.
 *
 * The kernel prepares the restart of a system call before the tracer sees the stop (do_signal): the thread then stands
 * before the svc instruction with all arguments, and the call's result cannot be seen.  So a thread that waits in a call
 * cannot be told from one that is about to make it; struct remote_thread says so by @left.
 */
#include "arch/remote.h"

#include <asm/sigcontext.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <unistd.h>

/* Register sets (uapi/linux/elf.h) that older headers lack. */
enum { ARM_TLS = 0x401, ARM_SYSTEM_CALL = 0x404, ARM_SVE = 0x405, ARM_SSVE = 0x40b, ARM_GCS = 0x410 };

enum {
	NO_ALTSTACK = 0x10,		/* invalid ss_flags, so that rt_sigreturn does not change the alternate stack */
	PSTATE_BTYPE = 3 << 10, PSTATE_SS = 1 << 21,
	SVC = (int)0xd4000001,
	STRIDE = 336,
	VQ_MAX = 6,			/* of SVE: more does not fit in a frame */
};

/* Internal results of an interrupted system call (include/linux/errno.h). */
enum { ERESTARTSYS = 512, ERESTART_RESTARTBLOCK = 516 };

struct frame {
	uint8_t info[128];
	uint64_t flags, link;
	struct { uint64_t sp; uint32_t flags, pad; uint64_t size; } altstack;
	uint64_t sigmask;
	uint8_t unused[128];
	struct {
		uint64_t fault_address, x[31], sp, pc, pstate, pad;
	} regs;
	struct fpsimd_context fp;
	struct _aarch64_ctx end;
};

_Static_assert(offsetof(struct frame, regs) == 304 && offsetof(struct frame, fp) == 592 && sizeof(struct frame) == 1136,
	       "the kernel's layout");

/* The header of ARM_SVE and ARM_SSVE, behind which are z, p and ffr as in a signal frame. */
struct sve_header {
	uint32_t size, max_size;
	uint16_t vl, max_vl, flags, reserved;
};

enum { SVE_IN_USE = 1 };

struct remote_found {
	struct remote_thread thread;
	struct user_regs_struct regs;
	uint64_t sigmask;
	struct user_fpsimd_struct fp;
	struct { struct sve_header head; uint8_t regs[546 * VQ_MAX + 64]; } sve;
	size_t sve_len;			/* bytes of its record in a frame; 0: none */
};

/* mov x8, #139; svc #0 */
static const uint8_t restorer[] = { 0x68, 0x11, 0x80, 0xd2, 0x01, 0x00, 0x00, 0xd4 };

/* --- facts ------------------------------------------------------------------------------------------- */

static int get_set(pid_t tid, unsigned long set, void *to, size_t *len)
{
	struct iovec io = { to, *len };

	if (ptrace(PTRACE_GETREGSET, tid, (void *)(uintptr_t)set, &io))
		return -errno;
	*len = io.iov_len;
	return 0;
}

static int get_regs(pid_t tid, struct user_regs_struct *r)
{
	size_t len = sizeof(*r);
	int err = get_set(tid, NT_PRSTATUS, r, &len);

	return err ? err : len == sizeof(*r) ? 0 : -ENOTSUP;	/* fewer: 32-bit code */
}

static int set_regs(pid_t tid, const struct user_regs_struct *r)
{
	struct iovec io = { (void *)(uintptr_t)r, sizeof(*r) };

	return ptrace(PTRACE_SETREGSET, tid, (void *)NT_PRSTATUS, &io) ? -errno : 0;
}

static bool is_svc(pid_t tid, uint64_t pc)
{
	long word;

	errno = 0;
	word = ptrace(PTRACE_PEEKTEXT, tid, (void *)(uintptr_t)(pc & ~7ull), NULL);
	return !errno && (int)(pc & 4 ? word >> 32 : word) == SVC;
}

/*
 * Calls that the kernel continues by its restart block, with the remaining time.  In a chain the block is used, so they
 * would begin anew: that is right where the timeout is absolute, or none.
 */
static bool has_block(const struct remote_thread *t)
{
	enum { FUTEX_CMD = 0x7f, FUTEX_WAIT = 0, FUTEX_WAIT_BITSET = 9, ABSTIME = 1 };

	switch (t->nr) {
	case SYS_futex:
		return ((t->arg[1] & FUTEX_CMD) == FUTEX_WAIT || (t->arg[1] & FUTEX_CMD) == FUTEX_WAIT_BITSET) && t->arg[3];
	case SYS_nanosleep:
		return true;
	case SYS_clock_nanosleep:
		return !(t->arg[1] & ABSTIME);
	default:
		return false;
	}
}

static struct remote_thread to_thread(pid_t tid, const struct user_regs_struct *r)
{
	struct remote_thread t = { .pc = r->pc, .sp = r->sp, .link = r->regs[30], .is_native = true, .nr = -1,
				   .result = (long)r->regs[0] };
	size_t len = sizeof(t.tls);
	int nr = -1;

	if (get_set(tid, ARM_TLS, &t.tls, &len))
		t.tls = 0;
	len = sizeof(nr);
	if (get_set(tid, ARM_SYSTEM_CALL, &nr, &len))
		nr = -1;
	memcpy(t.arg, r->regs, sizeof(t.arg));
	if (nr >= 0) {
		t.nr = nr;
	} else if (is_svc(tid, r->pc)) {
		t.nr = (long)r->regs[8];
		t.left = true;
		t.result = has_block(&t) ? -ERESTART_RESTARTBLOCK : -ERESTARTSYS;
	} else if (t.result == -EINTR && is_svc(tid, r->pc - 4)) {
		t.nr = (long)r->regs[8];
		t.left = true;
		t.arg[0] = 0;		/* the result is there */
	}
	return t;
}

static int look(pid_t tid, struct remote_thread *ret)
{
	struct user_regs_struct r;
	int err = get_regs(tid, &r);

	if (err == -ENOTSUP) {
		*ret = (struct remote_thread){ .nr = -1 };
		return 0;
	}
	if (!err)
		*ret = to_thread(tid, &r);
	return err;
}

/* --- saving ------------------------------------------------------------------------------------------ */

/* Code between system calls may use SVE's registers; a call leaves only the vector registers in them. */
static int save_sve(pid_t tid, struct remote_found *f)
{
	size_t len = sizeof(f->sve);
	unsigned int vq;

	f->sve_len = 0;
	if (get_set(tid, ARM_SVE, &f->sve, &len) || !(f->sve.head.flags & SVE_IN_USE) || f->thread.nr >= 0)
		return 0;
	vq = f->sve.head.vl / 16;
	if (!vq || vq > VQ_MAX)
		return -ENOTSUP;
	f->sve_len = (16 + 546 * vq + 15) & ~15u;
	return 0;
}

/* Streaming mode of SME has registers of its own, and a guarded control stack refuses returns that no call made. */
static bool is_strange(pid_t tid)
{
	struct sve_header sme = { 0 };
	uint64_t gcs[3] = { 0 };
	size_t len = sizeof(sme);

	if (!get_set(tid, ARM_SSVE, &sme, &len) && sme.flags & SVE_IN_USE)
		return true;
	len = sizeof(gcs);
	return !get_set(tid, ARM_GCS, gcs, &len) && gcs[0] & 1;
}

static int save(pid_t tid, struct remote_found **ret, size_t *fp_len, size_t *fp_align)
{
	struct remote_found *f = calloc(1, sizeof(*f));
	size_t len = sizeof(f->fp);
	int err;

	if (!f)
		return -ENOMEM;
	err = get_regs(tid, &f->regs);
	if (!err && ptrace(PTRACE_GETSIGMASK, tid, (void *)sizeof(f->sigmask), &f->sigmask))
		err = -errno;
	if (!err)
		err = get_set(tid, NT_FPREGSET, &f->fp, &len);
	if (!err && is_strange(tid))
		err = -ENOTSUP;
	if (!err) {
		f->thread = to_thread(tid, &f->regs);
		err = save_sve(tid, f);
	}
	if (err) {
		free(f);
		return err;
	}
	*fp_len = sizeof(struct frame) + f->sve_len;	/* the last frame */
	*fp_align = 16;
	*ret = f;
	return 0;
}

static void free_found(struct remote_found *f)
{
	free(f);
}

/* --- frames ------------------------------------------------------------------------------------------ */

static void put_fp(const struct remote_found *f, void *to)
{
	(void)f;
	(void)to;		/* they are in the last frame */
}

/* Only what is read of it: the rest is other frames'. */
static void put_call(const struct remote_found *f, void *to, const struct remote_call *c, uint64_t at_restorer,
		     uint64_t next)
{
	struct frame *fr = to;

	fr->altstack.sp = fr->altstack.size = 0;
	fr->altstack.flags = NO_ALTSTACK;
	fr->sigmask = remote_sigmask(c->unblocked);
	memcpy(fr->regs.x, c->arg, sizeof(c->arg));
	fr->regs.x[29] = 0;
	fr->regs.x[30] = at_restorer;
	fr->regs.sp = next;
	fr->regs.pc = c->fn;
	fr->regs.pstate = f->regs.pstate & ~(uint64_t)(PSTATE_BTYPE | PSTATE_SS);
	fr->fp.head = (struct _aarch64_ctx){ FPSIMD_MAGIC, sizeof(fr->fp) };
	fr->fp.fpsr = fr->fp.fpcr = 0;
	fr->end = (struct _aarch64_ctx){ 0, 0 };
}

enum restart { KEEP, AGAIN, INTERRUPTED };

/*
 * What happens to the call in which the thread waits when no handler runs.  As it stands the registers make the call again.
 * A call that ended with EINTR by the mere stop (epoll_pwait, signal(7)) remains so: its first argument is lost.
 */
static enum restart restart(const struct remote_thread *t)
{
	enum { FUTEX_CMD = 0x7f, FUTEX_WAIT_BITSET = 9 };

	if (t->nr < 0 || !t->left || t->result == -EINTR)
		return KEEP;
	if (t->result != -ERESTART_RESTARTBLOCK || (t->nr == SYS_futex && (t->arg[1] & FUTEX_CMD) == FUTEX_WAIT_BITSET) ||
	    (t->nr == SYS_nanosleep && !t->arg[1]) || (t->nr == SYS_clock_nanosleep && !t->arg[3]))
		return AGAIN;
	return INTERRUPTED;
}

static bool ends_call(const struct remote_thread *t)
{
	return restart(t) == INTERRUPTED;
}

static void end_with_eintr(struct user_regs_struct *r)
{
	r->regs[0] = (uint64_t)-EINTR;
	r->pc += 4;			/* svc */
}

static void put_found(const struct remote_found *f, void *to, uint64_t at_restorer, uint64_t fp_at)
{
	struct user_regs_struct r = f->regs;
	struct frame *fr = to;
	uint8_t *record = (uint8_t *)&fr->end;

	(void)at_restorer;
	(void)fp_at;
	if (restart(&f->thread) == INTERRUPTED)
		end_with_eintr(&r);
	memset(fr, 0, sizeof(*fr) + f->sve_len);
	fr->altstack.flags = NO_ALTSTACK;
	fr->sigmask = f->sigmask;
	memcpy(fr->regs.x, r.regs, sizeof(fr->regs.x));
	fr->regs.sp = r.sp;
	fr->regs.pc = r.pc;
	fr->regs.pstate = r.pstate;
	fr->fp.head = (struct _aarch64_ctx){ FPSIMD_MAGIC, sizeof(fr->fp) };
	fr->fp.fpsr = f->fp.fpsr;
	fr->fp.fpcr = f->fp.fpcr;
	memcpy(fr->fp.vregs, f->fp.vregs, sizeof(fr->fp.vregs));
	if (f->sve_len) {
		struct { struct _aarch64_ctx head; uint16_t vl, flags, reserved[2]; } sve = {
			{ 0x53564501, (uint32_t)f->sve_len }, f->sve.head.vl, 0, { 0 }
		};

		memcpy(record, &sve, sizeof(sve));
		memcpy(record + sizeof(sve), f->sve.regs, 546u * (f->sve.head.vl / 16));
	}
}

/* --- running ----------------------------------------------------------------------------------------- */

static int go(pid_t tid, const struct remote_found *f, uint64_t at_restorer, uint64_t frame)
{
	struct user_regs_struct r = f->regs;
	uint64_t mask = remote_sigmask(0);
	int err;

	r.pc = at_restorer;
	r.sp = frame;
	r.pstate &= ~(uint64_t)(PSTATE_BTYPE | PSTATE_SS);
	err = set_regs(tid, &r);
	/*
	 * Block pending signals until after the chain: a handler that ran now would not interrupt the call that is
	 * restarted later.  The last frame restores the thread's own mask.
	 */
	if (!err)
		ptrace(PTRACE_SETSIGMASK, tid, (void *)sizeof(mask), &mask);
	return err;
}

static int set_sp(pid_t tid, uint64_t sp)
{
	struct user_regs_struct r;
	int err = get_regs(tid, &r);

	r.sp = sp;
	return err ? err : set_regs(tid, &r);
}

/* The signal set behind @name in /proc/TID/status. */
static uint64_t signals(const char *status, const char *name)
{
	const char *at = strstr(status, name);

	return at ? strtoull(at + strlen(name), NULL, 16) : 0;
}

/* Has a signal come meanwhile that a handler is for? */
static bool is_signalled(pid_t tid)
{
	char path[32], status[4096];
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/status", (int)tid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	n = fd < 0 ? 0 : read(fd, status, sizeof(status) - 1);
	if (fd >= 0)
		close(fd);
	status[n > 0 ? n : 0] = '\0';
	return (signals(status, "SigPnd:") | signals(status, "ShdPnd:")) & ~signals(status, "SigBlk:") & signals(status, "SigCgt:");
}

/*
 * As found, the thread makes its call again, after a handler, too.  So the call ends here for a signal that is there; one
 * that comes later comes before the call, as it may in any program.
 */
static int put_back(pid_t tid, const struct remote_found *f)
{
	struct user_regs_struct r = f->regs;
	enum restart what = restart(&f->thread);

	if (what == INTERRUPTED || (what == AGAIN && is_signalled(tid)))
		end_with_eintr(&r);
	return set_regs(tid, &r);
}

static int end_call(pid_t tid)
{
	struct user_regs_struct r;
	int err = get_regs(tid, &r);

	if (err || !is_svc(tid, r.pc))
		return err;
	end_with_eintr(&r);
	return set_regs(tid, &r);
}

static bool is_at(const struct remote_thread *t, uint64_t frame)
{
	return t->nr == SYS_rt_sigreturn && !t->left && t->sp == frame;
}

/* --- errno ------------------------------------------------------------------------------------------- */

static bool is_insn(uint32_t insn, uint32_t mask, uint32_t value)
{
	return (insn & mask) == value;
}

/*
 * glibc:	adrp x0, PAGE; ldr x0, [x0, #off]; mrs x1, tpidr_el0; add x0, x1, x0; ret
 * musl:	mrs x0, tpidr_el0; sub x0, x0, #off; ret
 * Registers and order vary with the compiler, the instructions do not; a bti c may come first.
 */
static bool errno_at(const uint8_t *code, size_t len, uint64_t pc, uint64_t tls, uint64_t *ret, uint64_t *indirect)
{
	uint64_t page = 0, slot = 0;
	bool has_tls = false;

	*indirect = 0;
	*ret = tls;
	for (size_t at = 0; at + 4 <= len; at += 4) {
		uint32_t insn;

		memcpy(&insn, code + at, sizeof(insn));
		if (insn == 0xd503245f)						/* bti c */
			continue;
		if (is_insn(insn, 0xffffffe0, 0xd53bd040)) {			/* mrs xN, tpidr_el0 */
			has_tls = true;
		} else if (is_insn(insn, 0x9f000000, 0x90000000)) {		/* adrp */
			uint64_t imm = (uint64_t)(insn >> 5 & 0x7ffff) << 2 | (insn >> 29 & 3);

			page = ((pc + at) & ~0xfffull) + (uint64_t)((int64_t)(imm << 43) >> 31);
		} else if (is_insn(insn, 0xffc00000, 0xf9400000) && page) {	/* ldr xN, [xM, #off] */
			slot = page + (uint64_t)(insn >> 10 & 0xfff) * 8;
		} else if (is_insn(insn, 0xffe0fc00, 0x8b000000) && has_tls && slot) {	/* add xN, xM, xK */
			*indirect = slot;
		} else if (is_insn(insn, 0xffc00000, 0xd1000000) && has_tls && !page) {	/* sub xN, xM, #imm */
			*ret = tls - (insn >> 10 & 0xfff);
		} else if (insn == 0xd65f03c0) {				/* ret */
			return has_tls && (*indirect || *ret != tls);
		} else {
			return false;
		}
	}
	return false;
}

/* It is the return address of the handler, with whose frame pointer it is kept; sigaction(2) takes none. */
static bool is_signal_frame(const uint64_t *word, size_t n)
{
	(void)word;
	(void)n;
	return true;
}

static const struct arch_remote remote = {
	.restorer = restorer, .restorer_len = sizeof(restorer), .red_zone = 0,
	.frame = STRIDE, .frame_written = offsetof(struct frame, fp.vregs), .frame_len = sizeof(struct frame),
	.found_apart = true,
	.arg0 = offsetof(struct frame, regs.x), .arg0_before = 16,
	.look = look, .save = save, .free = free_found, .put_fp = put_fp, .put_call = put_call, .put_found = put_found,
	.ends_call = ends_call, .is_signal_frame = is_signal_frame,
	.go = go, .set_sp = set_sp, .put_back = put_back, .end_call = end_call, .is_at = is_at, .errno_at = errno_at,
};

const struct arch_remote *arch_remote(void)
{
	return &remote;
}
