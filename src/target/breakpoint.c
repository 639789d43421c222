/*
 * The breakpoint at a program's entry point.
 *
 * The auxiliary vector tells the dynamic loader where the program starts, and the loader jumps there when it
 * has finished; a breakpoint instruction there stops the first thread at exactly that moment.  One table has
 * the differences between machines: the instruction, the offset of the program counter from it after the
 * trap, and the position of the program counter in NT_PRSTATUS.
 */
#include <elf.h>
#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/user.h>

#include "target/priv.h"

struct machine {
	size_t regs_bytes;	/* size of NT_PRSTATUS: identifies the machine that a process runs as */
	size_t pc_off, pc_bytes;
	size_t pc_after;	/* program counter after the trap minus the breakpoint's address */
	size_t insn_bytes;
	unsigned char insn[4];
};

static const struct machine machines[] = {
#if defined(__x86_64__)
	{ sizeof(struct user_regs_struct), offsetof(struct user_regs_struct, rip), 8, 1, 1, { 0xcc } },
	{ 17 * 4, 12 * 4, 4, 1, 1, { 0xcc } },		/* i386 */
#elif defined(__aarch64__)
	{ sizeof(struct user_regs_struct), offsetof(struct user_regs_struct, pc), 8, 0, 4, { 0x00, 0x00, 0x20, 0xd4 } },
#endif
	{ 0 }
};

/* Read the registers of the stopped first thread into @buf.  NULL and errno: ESRCH, it has ended; ENOTSUP: unknown. */
static const struct machine *read_regs(const struct target *t, void *buf, size_t size)
{
	struct iovec iov = { buf, size };
	const struct machine *m;

	if (ptrace(PTRACE_GETREGSET, t->pid, (void *)NT_PRSTATUS, &iov))
		return NULL;
	for (m = machines; m->regs_bytes; m++)
		if (m->regs_bytes == iov.iov_len)
			return m;
	errno = ENOTSUP;
	return NULL;
}

static uint64_t get_pc(const struct machine *m, const unsigned char *regs)
{
	uint32_t pc32;
	uint64_t pc;

	if (m->pc_bytes == 4) {
		memcpy(&pc32, regs + m->pc_off, 4);
		return pc32;
	}
	memcpy(&pc, regs + m->pc_off, 8);
	return pc;
}

static void set_pc(const struct machine *m, unsigned char *regs, uint64_t pc)
{
	uint32_t pc32 = (uint32_t)pc;

	if (m->pc_bytes == 4)
		memcpy(regs + m->pc_off, &pc32, 4);
	else
		memcpy(regs + m->pc_off, &pc, 8);
}

/* The entry of @type in the target's auxiliary vector, or 0. */
static uint64_t find_auxv(const struct target *t, const struct machine *m, uint64_t type)
{
	struct strbuf auxv = { 0 };
	uint64_t ret = 0;
	size_t i;

	if (proc_read(t->pid, "auxv", &auxv))
		auxv.len = 0;
	for (i = 0; !ret && i + 2 * m->pc_bytes <= auxv.len; i += 2 * m->pc_bytes) {
		uint64_t v[2] = { 0 };
		uint32_t v32[2];

		if (m->pc_bytes == 4) {
			memcpy(v32, auxv.s + i, sizeof(v32));
			v[0] = v32[0];
			v[1] = v32[1];
		} else {
			memcpy(v, auxv.s + i, sizeof(v));
		}
		if (v[0] == type)
			ret = v[1];
	}
	strbuf_fini(&auxv);
	return ret;
}

uint64_t target_auxv(const struct target *t, uint64_t type)
{
	unsigned char regs[1024];
	const struct machine *m = read_regs(t, regs, sizeof(regs));

	return m ? find_auxv(t, m, type) : 0;
}

int entry_set(struct target *t, struct strbuf *why)
{
	unsigned char regs[1024];
	const struct machine *m = read_regs(t, regs, sizeof(regs));
	unsigned long word, with;
	uint64_t entry;

	if (!m)
		return errno == ENOTSUP ? target_fail(why, -ENOTSUP, "process %d: of another machine", (int)t->pid)
					: target_fail_errno(why, -errno, "cannot look at process %d", (int)t->pid);
	entry = find_auxv(t, m, AT_ENTRY);
	errno = 0;
	word = (unsigned long)ptrace(PTRACE_PEEKTEXT, t->pid, (void *)(uintptr_t)entry, NULL);
	if (!entry || errno)
		return target_fail(why, errno ? -errno : -ENOENT, "process %d: cannot find the entry point",
				   (int)t->pid);
	with = word;
	memcpy(&with, m->insn, m->insn_bytes);
	if (with == word)
		return target_fail(why, -EBUSY, "process %d: another breakpoint at its entry point", (int)t->pid);
	if (ptrace(PTRACE_POKETEXT, t->pid, (void *)(uintptr_t)entry, (void *)with))
		return target_fail_errno(why, -errno, "process %d: cannot stop at its entry point", (int)t->pid);
	t->entry = entry;
	t->entry_word = word;
	return 0;
}

int entry_hit(const struct target *t)
{
	unsigned char regs[1024];
	const struct machine *m = read_regs(t, regs, sizeof(regs));

	return m ? get_pc(m, regs) == t->entry + m->pc_after : -errno;
}

int entry_undo(struct target *t, struct strbuf *why)
{
	unsigned char regs[1024];
	const struct machine *m = read_regs(t, regs, sizeof(regs));
	struct iovec iov = { regs, m ? m->regs_bytes : 0 };

	if (!m)
		return errno == ESRCH ? 0 : target_fail_errno(why, -errno, "process %d: cannot restore its entry point", (int)t->pid);
	set_pc(m, regs, t->entry);
	if (ptrace(PTRACE_POKETEXT, t->pid, (void *)(uintptr_t)t->entry, (void *)t->entry_word) ||
	    ptrace(PTRACE_SETREGSET, t->pid, (void *)NT_PRSTATUS, &iov))
		return errno == ESRCH ? 0 : target_fail_errno(why, -errno, "process %d: cannot restore its "
							      "entry point", (int)t->pid);
	t->entry = 0;
	return 0;
}
