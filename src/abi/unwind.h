/*
 * For programs in the kernel that walk native frames without frame pointers: for each page of a file's code, a table of
 * where the caller's frame is, built by the tracer from the file's .eh_frame, and for each process, where files are
 * mapped.
 *
 * A program looks a process up by struct abi_process_key, which fork keeps and exec changes.  It asks the tracer
 * (ABI_REC_PROCESS) about a process that it does not find, or that runs code outside the known mappings.
 */
#ifndef DTAP_ABI_UNWIND_H
#define DTAP_ABI_UNWIND_H

#include "abi/record.h"

struct abi_process_key {
	abi_u64 start_code, start_stack;	/* of struct mm_struct; fields 26 and 28 of /proc/PID/stat */
};

/* The record that asks the tracer about a process. */
enum { ABI_REC_PROCESS = 0xfffffffd };
struct abi_ask {
	struct abi_record hdr;
	struct abi_process_key key;
	abi_u64 starts;			/* it has just called exec; else it has fired a probe */
};
_Static_assert(sizeof(struct abi_ask) == 56, "question about a process");

/*
 * A mapping of code.  A byte's address in the ELF file is its address minus @bias.  @npages pages of the file, from
 * page number @first on, have rows; the first page's are those of entry @index of abi_unwind.index.
 */
struct abi_range {
	abi_u64 start, bias;
	abi_u32 size, first, npages, index;
};

/* The mappings of a process, sorted by address; unused entries have start ABI_RANGE_NONE. */
enum { ABI_RANGES = 128 };
struct abi_ranges {
	abi_u32 n;
	abi_u32 asked;			/* by a program, since this was written */
	struct abi_range v[ABI_RANGES];
};
_Static_assert(sizeof(struct abi_ranges) == 8 + 32 * ABI_RANGES, "mappings of a process");
#define ABI_RANGE_NONE 0x7fffffffffffffff

/*
 * A rule that is valid from byte @at of a page on.  The CFA (DWARF 5, 6.4) is a register plus @cfa.  The return address
 * is at CFA - 8, the caller's rbp at CFA + ABI_UNWIND_RBP, or, if that is 0, still in rbp.
 */
enum abi_unwind_base {
	ABI_UNWIND_UNKNOWN,		/* no such rule: use the frame pointer */
	ABI_UNWIND_SP, ABI_UNWIND_BP,
	ABI_UNWIND_END,			/* there is no caller */
};
struct abi_unwind_row {
	abi_u16 at;
	abi_u16 base;			/* enum abi_unwind_base; ABI_UNWIND_RBP in the upper bits */
	abi_s32 cfa;
};
/*
 * On machines with a link register (struct arch_kept: links) rbp is the frame pointer, and the number of the CFA has 24
 * bits; the 8 above them say where the return address is: 0, still in the link register; ABI_UNWIND_BEHIND, behind the
 * caller's frame pointer; n, at CFA - 8 * n.
 */
enum { ABI_UNWIND_BEHIND = 255, ABI_UNWIND_CFA_BITS = 24 };
#define ABI_UNWIND_LINK_CFA(CFA) ((abi_s32)((abi_u32)(CFA) << 8) >> 8)
#define ABI_UNWIND_LINK_AT(CFA) ((abi_u32)(CFA) >> ABI_UNWIND_CFA_BITS)
#define ABI_UNWIND_LINK_PACK(CFA, AT) ((abi_s32)(((abi_u32)(CFA) & 0xffffff) | (abi_u32)(AT) << ABI_UNWIND_CFA_BITS))
/* The bits of an address of user space there: the others may be a signature of it (pointer authentication). */
#define ABI_UNWIND_LINK_ADDR 0xffffffffffffull

#define ABI_UNWIND_BASE(BASE) ((BASE) & 3)
#define ABI_UNWIND_RBP(BASE) ((abi_s16)(BASE) >> 2)
#define ABI_UNWIND_PACK(BASE, RBP) ((abi_u16)((abi_u16)(BASE) | (abi_u16)(RBP) << 2))

/*
 * The rows of all files, by pages of code: those of entry @i begin at index[i] and end at index[i + 1].  The first row
 * of a page is for its first byte.  They are written before a struct abi_range refers to them.
 */
enum { ABI_UNWIND_SHIFT = 10, ABI_UNWIND_PAGES = 1 << 17, ABI_UNWIND_ROWS = 1 << 20 };
struct abi_unwind {
	abi_u32 index[ABI_UNWIND_PAGES];
	struct abi_unwind_row rows[ABI_UNWIND_ROWS];
};
_Static_assert(sizeof(struct abi_unwind_row) == 8, "row of a table");

#endif
