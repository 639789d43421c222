/*
 * The shared memory of a session in the target place: two anonymous files that the tracer makes and every target
 * process maps.
 *
 * The image is finished before anybody else sees it and sealed against writing: the header, what lies where in
 * the data, the programs, and the maps that programs only read.
 *
 *	| abi_image | abi_map[nmaps] | abi_prog[nprogs] | abi_fire[nfires] | instructions ... | read-only maps ... |
 *
 * The data is written by all.  It begins with struct abi_data, whose start is the control block that the kernel
 * place has, too; then come the maps that all share, then the lanes, all alike.  Nobody trusts what is in it:
 * layouts come from the image alone, and every number read from the data is bounded before use.
 *
 *	| abi_data | shared maps ... | lane 0 | lane 1 | ... |
 *
 * A lane has one writer at a time, which needs no atomic operations in it, and any number of readers.  Lane 0 is the
 * tracer's, for the programs that it runs itself.  A target process takes one for itself: its events come
 * one at a time, since they come with the interpreter's lock held.
 *
 *	| abi_lane | ABI_MAP_SCRATCH | ABI_MAP_OUT | ABI_MAP_LANE_* ... |
 *
 * A table (ABI_MAP_LANE_HASH, ABI_MAP_SHARED_HASH) is
 *
 *	| abi_table | uint32_t index[buckets] | elements of stride bytes: abi_elem, key, value ... |
 *
 * Elements are taken from the front on, so that a reader looks at abi_table.used of them and at nothing else, and
 * memory that was never used stays unallocated.  In a lane's table the index has 1 + an element's number, found by
 * linear probing; in a shared one it is the head of a chain, and each bucket has a lock word in a second array
 * behind the first.
 */
#ifndef DTAP_ABI_SEGMENT_H
#define DTAP_ABI_SEGMENT_H

#include "abi/record.h"

enum { ABI_SEGMENT_MAGIC = 0x70617464 };

enum {
	ABI_MAX_MAPS = 1024,
	ABI_MAX_PROGS = 4096,
	ABI_MAX_LANES = 1024,
	ABI_ALIGN = 4096,		/* of maps and lanes in the data */
	ABI_RING_HEADER = 8,
};

enum {
	ABI_SEGMENT_WAIT = 1,	/* a process that finds its ring full waits for the tracer instead of losing the record */
	ABI_SEGMENT_STACKS = 2,	/* programs ask for stacks or names of addresses ... */
	ABI_SEGMENT_PYTHON = 4,	/* ... with frames of Python */
};

enum abi_map_kind {
	ABI_MAP_NONE,		/* not needed by this session's programs */
	ABI_MAP_IMAGE,		/* an array in the image, read-only: off from its start */
	ABI_MAP_ARRAY,		/* an array in the data: off from its start */
	ABI_MAP_SHARED_HASH,	/* likewise */
	ABI_MAP_OUT,		/* the lane's ring of records: off from the lane's start, and so on */
	ABI_MAP_SCRATCH,	/* the lane's scratch memory, whatever the index */
	ABI_MAP_LANE_ARRAY,	/* one element */
	ABI_MAP_LANE_HASH,
	ABI_MAP_LANE_BUFFERS,	/* an array; a run takes and gives back elements by their first word, which is 0 between runs */
	ABI_MAP_KINDS
};

struct abi_map {
	abi_u32 kind;			/* enum abi_map_kind */
	abi_u32 key_size, value_size;	/* bytes; those of a table are multiples of 8 */
	abi_u32 max_entries;		/* OUT: bytes of the ring, a power of two */
	abi_u64 off, size;		/* of all of it; off is a multiple of 64, in the data of ABI_ALIGN */
	abi_u32 buckets;		/* tables: a power of two */
	abi_u32 stride;			/* tables: bytes from element to element, a multiple of 8 */
};
_Static_assert(sizeof(struct abi_map) == 40, "map of a segment");

struct abi_prog {
	abi_u64 off;			/* of its instructions in the image, multiple of 8 */
	abi_u32 ninsns;
	abi_u32 tracer;			/* 1: only the tracer runs it */
};
_Static_assert(sizeof(struct abi_prog) == 16, "program of a segment");

/* strsize for which ABI_HELPER_ADD_BY_STRING serves. */
enum { ABI_ADD_STRING_MAX = 4096 };

/* Helpers that the kernel does not have, beyond its numbers. */
enum {
	ABI_HELPER_PARENT = 0x10000,	/* the parent's pid */
	ABI_HELPER_THREAD_TIME,		/* ns that this thread has run */
	ABI_HELPER_SCRATCH,		/* the lane's scratch memory, or 0 */
	ABI_HELPER_CTX,			/* the context */
	ABI_HELPER_ADD_BY_STRING,	/* (map, string, classes, word, value): see vm/add.c */
	ABI_HELPER_SELF,		/* (enum abi_task): that of this process */
	ABI_HELPER_STACK,	/* (ring, ABI_STACK_..., frames, address): see vm/stack.h */
	ABI_HELPER_PATH,		/* (dst, size, of the root instead of the current directory): its bytes with the NUL */
	ABI_HELPER_PROGENYOF,		/* (pid): 1 when this process is that or descends from it, else 0; or a negative errno */
};

enum abi_task {
#define ABI_TASK(NAME, ...) ABI_TASK_##NAME,
#include "abi/task.def"
#undef ABI_TASK
	ABI_TASK_MAX
};

/* What a marker of the agent runs: those of one marker in the order in which they are to run. */
struct abi_fire {
	abi_u32 marker;			/* number of the marker, in the order of agent/marker.h */
	abi_u32 prog;
	abi_u32 probe;			/* index in the probe table, the program's first argument */
	abi_u32 pid;			/* in this process only; 0: in all */
	abi_u32 uses;			/* arguments that the program reads: bit n for arg n */
	/* The program is nothing but @[copyinstr(argN)] = count(): 1 + N, else 0; the first of the maps that it counts
	 * in and how many there are. */
	abi_u32 count_arg, count_map, count_classes;
};
_Static_assert(sizeof(struct abi_fire) == 32, "fire of a segment");

struct abi_image {
	abi_u32 magic, version;		/* ABI_SEGMENT_MAGIC, ABI_VERSION */
	abi_u64 size;			/* of the image */
	abi_u64 data_size;
	abi_u32 nmaps, nprogs, nfires, nlanes;
	abi_u64 lanes_off, lane_size;	/* in the data; multiples of ABI_ALIGN */
	abi_u64 id;			/* random: the same one received again is known by it */
	abi_u32 flags;			/* ABI_SEGMENT_* */
	abi_u16 ranges, unwind;		/* 1 + number of the map with struct abi_ranges by process, with struct abi_unwind; 0: none */
	abi_u64 reserved[2];
	/* struct abi_map[], struct abi_prog[], struct abi_fire[] follow */
};
_Static_assert(sizeof(struct abi_image) == 88, "segment's image");

/*
 * How the processor's cycle counter becomes CLOCK_MONOTONIC: base_ns + ((tsc - base_tsc) * mult >> 32).  Written by
 * the tracer, who keeps it in step; seq is odd meanwhile.
 */
struct abi_clock {
	abi_u32 seq;
	abi_u32 usable;			/* 0: ask the system */
	abi_u64 base_tsc, base_ns, mult;
};
_Static_assert(sizeof(struct abi_clock) == 32, "clock of a segment");

struct abi_data {
	struct abi_control control;
	struct abi_clock clock;
	abi_u32 lanes_high;		/* lanes from this number on were never taken */
	abi_u32 woken;			/* 1: the tracer has been woken and not looked yet */
	abi_u64 failed_runs;		/* of programs that touched what is not theirs: a corrupted segment */
	abi_u64 no_lane;		/* events lost because all lanes were taken */
};
_Static_assert(sizeof(struct abi_data) == 184, "start of a segment's data");

/* Who has a lane. */
struct abi_lane {
	abi_u32 owner;			/* 0: nobody; else pid, changed by compare-and-swap */
	abi_u32 busy;			/* 1: a program runs on it */
	abi_u32 changing;		/* 1: a table's index is being changed; left so by an owner that was killed */
	abi_u32 given_back;		/* how often an element of a table ceased to be its key's; the owner's to know */
	abi_u64 owner_start;		/* when the owner started, to tell it from a later process of its number */
	abi_u64 reserved[5];
	/* The ring, by bytes ever written and read. */
	abi_u64 head __attribute__((aligned(64)));	/* the owner's */
	abi_u64 tail __attribute__((aligned(64)));	/* the tracer's */
	abi_u64 reserved2[7];
};
_Static_assert(sizeof(struct abi_lane) == 192, "lane's header");

/* In front of each record in a ring: its bytes, a multiple of 8; or the rest of the ring is to be passed over. */
enum { ABI_RING_SKIP = 0xffffffff };

struct abi_table {
	abi_u32 used;			/* elements taken from the front so far */
	abi_u32 free;			/* LANE_HASH: 1 + first of the elements given back, chained by next */
	abi_u64 free_tagged;		/* SHARED_HASH: the same in the low half, a count of changes in the high */
	abi_u32 live;			/* elements in use, roughly */
	abi_u32 dead;			/* LANE_HASH: not 0 when the tracer has removed some; atomic */
	abi_u64 reserved[5];
};
_Static_assert(sizeof(struct abi_table) == 64, "table's header");

enum abi_elem_state {
	ABI_ELEM_FREE,
	ABI_ELEM_LIVE,
	ABI_ELEM_DEAD,			/* removed by the tracer from a lane's table: the owner revives or recycles it */
	ABI_ELEM_NEW,			/* of a shared table: complete, but perhaps in no chain yet */
};

struct abi_elem {
	abi_u32 state;			/* enum abi_elem_state */
	abi_u32 hash;
	abi_u32 next;			/* 1 + the next of the chain or of the free ones; 0: the last */
	abi_u32 pad;
};
_Static_assert(sizeof(struct abi_elem) == 16, "element of a table");

#endif
