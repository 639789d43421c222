/*
 * Shared by the compiler's files, private to them.
 */
#ifndef DTAP_VM_CODE_H
#define DTAP_VM_CODE_H

#include "arch/jit.h"
#include "vm/prog.h"

#define THREAD(FIELD) ((int32_t)offsetof(struct vm_thread, FIELD))

struct fix {
	size_t jump;
	uint32_t insn;
	bool call;
};

struct compiler {
	const struct vm_prog *p;
	struct code_buf b;
	uint32_t *at, *ends;	/* by instruction: start and end of its code */
	uint32_t *calls;	/* by a function's first instruction: the entry for calls; jumps to it lead elsewhere */
	struct fix *fixes;	/* at most one for each instruction */
	uint32_t nfixes;
	size_t checks[2][9];	/* by direction and size */
	size_t fault, timeout, entry, exit;
};

/* Can map @k's memory be accessed with @size bytes? */
static inline bool code_usable(const struct vm_spec *s, uint32_t k, bool write, unsigned int size)
{
	return s->maps[k].base && s->maps[k].size >= size && !(write && s->maps[k].readonly);
}

/* Emit the call at @at in @f: of a function of the program, a loop, or a helper. */
void code_call(struct compiler *c, const struct vm_func *f, uint32_t at);

#endif
