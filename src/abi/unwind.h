/*
 * How programs in the kernel walk native frames that have no frame pointers: for each page of a file's code, a table of
 * where the caller's frame is, made by the tracer from the file's .eh_frame, and for each process, which files it has
 * where.
 *
 * A program knows a process by struct abi_process_key, which is the same in what it forks and another after exec.  One
 * that it finds nothing for, or that runs code outside of what is known, it asks about (ABI_REC_PROCESS).
 */
#ifndef DTAP_ABI_UNWIND_H
#define DTAP_ABI_UNWIND_H

#include "abi/record.h"

struct abi_process_key {
	abi_u64 start_code, start_stack;	/* of struct mm_struct; fields 26 and 28 of /proc/PID/stat */
};

/* The record of a process to be asked about. */
enum { ABI_REC_PROCESS = 0xfffffffd };
struct abi_ask {
	struct abi_record hdr;
	struct abi_process_key key;
	abi_u64 starts;			/* it has just called exec; else it fires a probe */
};
_Static_assert(sizeof(struct abi_ask) == 56, "question about a process");

/*
 * A mapping of code: the address of a byte of it in the file's own terms is that less @bias.  Of the pages that the file
 * has by these, @npages from number @first on have rows, by entry @index and the following of the index.
 */
struct abi_range {
	abi_u64 start, bias;
	abi_u32 size, first, npages, index;
};

/* A process's, by address; the entries that are left have the highest start there is. */
enum { ABI_RANGES = 128 };
struct abi_ranges {
	abi_u32 n;
	abi_u32 asked;			/* by a program, since this was written */
	struct abi_range v[ABI_RANGES];
};
_Static_assert(sizeof(struct abi_ranges) == 8 + 32 * ABI_RANGES, "mappings of a process");
#define ABI_RANGE_NONE 0x7fffffffffffffff

/*
 * What holds from byte @at of a page on.  The CFA (DWARF 5, 6.4) is a register plus @cfa; the return address lies at
 * CFA - 8, the caller's rbp at CFA + @rbp or (0) is in rbp still.
 */
enum abi_unwind_base {
	ABI_UNWIND_UNKNOWN,		/* none of this: by the frame pointer */
	ABI_UNWIND_SP, ABI_UNWIND_BP,
	ABI_UNWIND_END,			/* there is no caller */
};
struct abi_unwind_row {
	abi_u16 at;
	abi_u16 base;			/* enum abi_unwind_base, and the distance to rbp in the rest */
	abi_s32 cfa;
};
#define ABI_UNWIND_BASE(BASE) ((BASE) & 3)
#define ABI_UNWIND_RBP(BASE) ((abi_s16)(BASE) >> 2)
#define ABI_UNWIND_PACK(BASE, RBP) ((abi_u16)((abi_u16)(BASE) | (abi_u16)(RBP) << 2))

/*
 * The rows of all files, by pages of code: those of entry @i of the index begin at index[i] and end where the next ones
 * begin.  The first row of a page is of its first byte.  Written before a struct abi_range leads there.
 */
enum { ABI_UNWIND_SHIFT = 10, ABI_UNWIND_PAGES = 1 << 17, ABI_UNWIND_ROWS = 1 << 20 };
struct abi_unwind {
	abi_u32 index[ABI_UNWIND_PAGES];
	struct abi_unwind_row rows[ABI_UNWIND_ROWS];
};
_Static_assert(sizeof(struct abi_unwind_row) == 8, "row of a table");

#endif
