/*
 * Native frames of a stopped thread of another process, by the unwind rows that programs in the kernel use, too
 * (abi/unwind.h).
 *
 * The caller supplies the function that reads memory, because it may have a copy.  A walk ends at code without rows,
 * and where a frame depends on a register that the caller does not know (natives_regs.has_bp).
 */
#ifndef DTAP_PROBE_NATIVES_H
#define DTAP_PROBE_NATIVES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct natives;
struct symbol;
struct symbols;

struct natives_regs {
	uint64_t ip, sp, bp;
	bool has_bp;
	uint64_t link;		/* the link register, where the machine has one; 0: unknown */
};

/* For process @pid, whose mappings are read now; @s must outlive it.  NULL: no memory. */
struct natives *natives_new(struct symbols *s, uint32_t pid);
void natives_free(struct natives *n);	/* accepts NULL */

/*
 * The frames from @regs on, the innermost first.  Returns their number, at most @max; *whole: the stack has no more.
 * Their symbols are filled in; the address of a caller is that after the call.  @ends gets the address behind each
 * frame on the stack; 0: unknown.
 */
size_t natives_walk(struct natives *n, const struct natives_regs *regs,
		    bool (*read)(void *ctx, uint64_t addr, void *buf, size_t size), void *ctx, struct symbol *v,
		    uint64_t *ends, size_t max, bool *whole);

#endif
