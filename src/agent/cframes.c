/* SPDX-License-Identifier: MIT */
#include "agent/cframes.h"

#include <elf.h>
#include <string.h>

#include "agent/cstack.h"

enum { FAR = 1 << 20 };		/* maximum distance of a frame pointer from the stack pointer */

/* Defined by the linker: this object's ELF header in memory. */
extern const Elf64_Ehdr __ehdr_start[] __attribute__((visibility("hidden")));

/* Does the machine have a link register (abi/unwind.h)? */
#if defined(__aarch64__)
enum { LINKS = 1 };
#else
enum { LINKS = 0 };
#endif

/* The registers that the tables restore, for one frame after the other. */
struct regs {
	uint64_t ip, sp, bp;
	bool loose;		/* @sp is only a lower bound: where there is a link register, a frame has its record anywhere */
	uint64_t low, high;	/* the readable range */
};

static inline bool read_word(const struct regs *r, uint64_t addr, uint64_t *ret)
{
	if (addr < r->low || addr > r->high - sizeof(*ret))
		return false;
	memcpy(ret, (const void *)(uintptr_t)addr, sizeof(*ret));
	return true;
}

static bool by_pointer(struct regs *r)
{
	uint64_t bp = r->bp;

	if (bp < r->sp || bp - r->sp > FAR || bp & 7 || !read_word(r, bp, &r->bp) || !read_word(r, bp + 8, &r->ip))
		return false;
	if (LINKS)
		r->ip &= ABI_UNWIND_LINK_ADDR;
	r->loose = LINKS;
	r->sp = bp + 16;
	return true;
}

static bool in_agent(uint64_t ip)
{
	const Elf64_Phdr *p = (const void *)((const char *)__ehdr_start + __ehdr_start->e_phoff);
	uint64_t at = ip - (uint64_t)(uintptr_t)__ehdr_start;

	for (int k = 0; k < __ehdr_start->e_phnum; k++)
		if (p[k].p_type == PT_LOAD && p[k].p_flags & PF_X && at - p[k].p_vaddr < p[k].p_memsz)
			return true;
	return false;
}

/* Restore the registers of the agent's caller. */
static bool leave_agent(struct regs *r, const void *engine)
{
	r->bp = (uint64_t)(uintptr_t)engine;
	r->sp = r->bp;
	do {
		if (!by_pointer(r))
			return false;
	} while (in_agent(r->ip));
	return true;
}

/* The row for @pc.  The tables may change meanwhile, so each index is bounded where it is used. */
static struct abi_unwind_row find_row(const struct abi_ranges *ranges, const struct abi_unwind *u, uint64_t pc, bool *missing)
{
	static const struct abi_unwind_row unknown = { 0, ABI_UNWIND_UNKNOWN, 0 };
	uint32_t at = 0, row, n, page;

	for (uint32_t step = ABI_RANGES / 2; step; step /= 2)
		if (ranges->v[(at + step) & (ABI_RANGES - 1)].start <= pc)
			at += step;
	at &= ABI_RANGES - 1;
	if (pc - ranges->v[at].start >= ranges->v[at].size) {
		*missing = true;
		return unknown;
	}
	pc -= ranges->v[at].bias;
	page = (uint32_t)(pc >> ABI_UNWIND_SHIFT) - ranges->v[at].first;
	if (page >= ranges->v[at].npages)
		return unknown;
	page += ranges->v[at].index;
	row = u->index[page & (ABI_UNWIND_PAGES - 1)];
	n = u->index[(page + 1) & (ABI_UNWIND_PAGES - 1)] - row;
	if (!n)
		return unknown;
	pc &= (1 << ABI_UNWIND_SHIFT) - 1;
	at = 0;
	for (uint32_t step = 1 << (ABI_UNWIND_SHIFT - 1); step; step /= 2)
		if (at + step < n && u->rows[(row + at + step) & (ABI_UNWIND_ROWS - 1)].at <= pc)
			at += step;
	return u->rows[(row + at) & (ABI_UNWIND_ROWS - 1)];
}

/*
 * The same where there is a link register.  All frames have called another one, so none has its return address there; and
 * one that saves the frame pointer has made a record, to which that leads.
 */
static bool by_link(struct regs *r, struct abi_unwind_row row)
{
	uint64_t rbp = (uint64_t)(int64_t)ABI_UNWIND_RBP(row.base), at = ABI_UNWIND_LINK_AT(row.cfa), cfa;

	if (!r->loose || ABI_UNWIND_BASE(row.base) == ABI_UNWIND_BP)
		cfa = (ABI_UNWIND_BASE(row.base) == ABI_UNWIND_SP ? r->sp : r->bp) + (uint64_t)(int64_t)ABI_UNWIND_LINK_CFA(row.cfa);
	else if (rbp)
		cfa = r->bp - rbp;
	else
		return by_pointer(r);
	if (!at || cfa <= r->sp || !read_word(r, at == ABI_UNWIND_BEHIND ? cfa + rbp + 8 : cfa - 8 * at, &r->ip) ||
	    (rbp && !read_word(r, cfa + rbp, &r->bp)))
		return false;
	r->ip &= ABI_UNWIND_LINK_ADDR;
	r->sp = cfa;
	r->loose = false;
	return true;
}

/* Restore the caller's registers by @row. */
static bool by_row(struct regs *r, struct abi_unwind_row row)
{
	uint64_t cfa = (ABI_UNWIND_BASE(row.base) == ABI_UNWIND_SP ? r->sp : r->bp) + (uint64_t)(int64_t)row.cfa;

	if (cfa <= r->sp || !read_word(r, cfa - 8, &r->ip))
		return false;
	if (ABI_UNWIND_RBP(row.base) && !read_word(r, cfa + (uint64_t)(int64_t)ABI_UNWIND_RBP(row.base), &r->bp))
		return false;
	r->sp = cfa;
	return true;
}

uint32_t cframes_walk(const void *engine, const struct abi_ranges *ranges, const struct abi_unwind *tables, uint32_t most,
		      uint64_t *words, uint64_t *sps, bool *missing)
{
	struct cstack stack = cstack_bounds();
	struct regs r = { .low = (uint64_t)(uintptr_t)__builtin_frame_address(0), .high = (uint64_t)(uintptr_t)stack.high };
	uint32_t n = 0;
	bool more;

	*missing = false;
	if (r.low < (uint64_t)(uintptr_t)stack.low || r.low >= r.high || !leave_agent(&r, engine))
		return 0;
	do {
		struct abi_unwind_row row = { 0, ABI_UNWIND_UNKNOWN, 0 };

		if (!r.ip || n >= most)
			break;
		words[n] = r.ip;
		sps[n++] = r.sp;
		if (ranges && tables)
			row = find_row(ranges, tables, r.ip - 1, missing);	/* a function may end with a call */
		if (ABI_UNWIND_BASE(row.base) == ABI_UNWIND_END)
			break;
		more = ABI_UNWIND_BASE(row.base) == ABI_UNWIND_UNKNOWN ? by_pointer(&r) :
		       LINKS ? by_link(&r, row) : by_row(&r, row);
	} while (more);
	return n;
}
