/*
 * The shared memory of a session in the target place: two anonymous files that the tracer creates and every target
 * process of a trust domain (target/peer.h) maps; each domain has its own.
 *
 * The image is complete and sealed against writing before it is shared: the header, the layout of the data, the
 * programs, and the maps that programs only read.
 *
 * | abi_image | abi_map[nmaps] | abi_prog[nprogs] | abi_fire[nfires] | abi_wanted[nwanted] | texts | instructions ... |
 *	| read-only maps ... |
 *
 * The data is written by all.  It begins with struct abi_data, which starts with the control block that the kernel
 * place has, too; then come the maps that all share, then the lanes, all of the same layout.  Its contents are not
 * trusted: layouts come from the image only, and every number read from the data is checked before use.
 *
 *	| abi_data | shared maps ... | lane 0 | lane 1 | ... |
 *
 * A lane has one writer at a time, which needs no atomic operations in it, and any number of readers.  Lane 0 is for
 * the programs that the tracer runs itself.  Each target process takes one lane: its events are serialised by the
 * interpreter's lock.  Without that lock, its threads take lanes of their own.
 *
 *	| abi_lane | ABI_MAP_SCRATCH | ABI_MAP_OUT | ABI_MAP_LANE_* ... |
 *
 * A table (ABI_MAP_LANE_HASH, ABI_MAP_SHARED_HASH) is
 *
 *	| abi_table | uint32_t index[buckets] | elements of stride bytes: abi_elem, key, value ... |
 *
 * Elements are allocated from the front, so that a reader only reads the first abi_table.used, and memory that was
 * never used stays unallocated.  In a lane's table the index has 1 + an element's number, found by linear probing; in a
 * shared one it has the head of a chain, and a second array after it has a lock word for each bucket.
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
	ABI_SEGMENT_WAIT = 1,	/* a process whose ring is full waits for the tracer instead of losing the record */
	ABI_SEGMENT_STACKS = 2,	/* programs use stacks or names of addresses ... */
	ABI_SEGMENT_PYTHON = 4,	/* ... with Python frames */
	ABI_SEGMENT_VALUES = 8,	/* programs use Python values ... */
	ABI_SEGMENT_TASKS = 16,	/* ... and asyncio tasks */
	ABI_SEGMENT_VTIME = 32,	/* programs read vtimestamp: the time of events is not part of it */
	ABI_SEGMENT_APART = 64,	/* no event depends on another's ending first: they may come at the same time */
};

enum abi_map_kind {
	ABI_MAP_NONE,		/* not needed by this session's programs */
	ABI_MAP_IMAGE,		/* an array in the image, read-only: off from its start */
	ABI_MAP_ARRAY,		/* an array in the data: off from its start */
	ABI_MAP_SHARED_HASH,	/* likewise */
	ABI_MAP_OUT,		/* the lane's ring of records; off from the lane's start, also in the following */
	ABI_MAP_SCRATCH,	/* the lane's scratch memory, for any index */
	ABI_MAP_LANE_ARRAY,	/* one element */
	ABI_MAP_LANE_HASH,
	ABI_MAP_LANE_BUFFERS,	/* an array; a run takes and frees elements by their first word, 0 between runs */
	ABI_MAP_KINDS
};

struct abi_map {
	abi_u32 kind;			/* enum abi_map_kind */
	abi_u32 key_size, value_size;	/* bytes; those of a table are multiples of 8 */
	abi_u32 max_entries;		/* OUT: bytes of the ring, a power of two */
	abi_u64 off, size;		/* of the whole map; off is a multiple of 64, in the data of ABI_ALIGN */
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

/* The largest strsize for which ABI_HELPER_ADD_BY_STRING works. */
enum { ABI_ADD_STRING_MAX = 4096 };

/* Helpers that the kernel does not have; their numbers are above the kernel's. */
enum {
	ABI_HELPER_PARENT = 0x10000,	/* the parent's pid */
	ABI_HELPER_THREAD_TIME,		/* CPU time of this thread in ns, without that of the events in it */
	ABI_HELPER_SCRATCH,		/* the lane's scratch memory, or 0 */
	ABI_HELPER_CTX,			/* the context */
	ABI_HELPER_ADD_BY_STRING,	/* (map, string, classes, word, value): see vm/add.c */
	ABI_HELPER_SELF,		/* (enum abi_task): its value for this process */
	ABI_HELPER_STACK,	/* (ring, ABI_STACK_..., frames, address): see vm/stack.h */
	ABI_HELPER_PATH,		/* (dst, size, root?): the root or current directory; bytes with the NUL */
	ABI_HELPER_PROGENYOF,		/* (pid): 1 if this process is it or a descendant, 0, or a negative errno */
	ABI_HELPER_VALUE,		/* (dst, size, enum abi_value, object, address of a name): 0, the bytes of a
					 * string with its NUL, or minus enum abi_fault */
	ABI_HELPER_STRCMP,		/* (a, size, b, size): as IR_STRCMP, for strings that end within their sizes */
	ABI_HELPER_QUANTIZE,		/* (value): the number of its bucket for quantize() */
	ABI_HELPER_INTEGER,		/* (dst, 16, enum abi_value, object, address of a name): two answers of
					 * ABI_HELPER_VALUE at once, an object and the object's VALUE_INT; 0, or 1: nothing
					 * is known, ask for each */
	/*
	 * (ring, record, size, strings, fields | strsize << 32): append the record of so many fields, at most
	 * ABI_RECORD_FIELDS.  The header at @record has time, rec and probe; a slot has an integer or, if the field's
	 * bit in @strings is set, the address of a string.  @size is the room for all of it, each string cut to strsize
	 * bytes.  0; -EAGAIN: there is no room in the ring; 1 + number of the first field whose string cannot be read:
	 * nothing was appended.
	 */
	ABI_HELPER_RECORD,
};

enum { ABI_RECORD_FIELDS = 32 };

/*
 * A flag of map_update_elem, beside the kernel's: an element whose value is all zero is like none, and may be used for another
 * key when the table is full.
 */
enum { ABI_UPDATE_ZERO_IS_NONE = 1 << 16 };

/* The queries of ABI_HELPER_VALUE. */
enum abi_value {
#define ABI_VALUE(NAME, ...) ABI_VALUE_##NAME,
#include "abi/values.def"
#undef ABI_VALUE
	ABI_VALUE_MAX
};

/* The variables of a function that VARS selects. */
enum abi_variables {
	ABI_VARIABLES_PARAMETERS = 1,
	ABI_VARIABLES_LOCALS = 2,	/* the function's own except parameters */
	ABI_VARIABLES_REPR = 4,		/* values as repr() returns them */
};

enum abi_task {
#define ABI_TASK(NAME, ...) ABI_TASK_##NAME,
#include "abi/task.def"
#undef ABI_TASK
	ABI_TASK_MAX
};

/*
 * What a program of a marker returns: 0, or that the code object's file and name alone have decided that it does nothing.
 * It is not run again for the same file and name.
 */
enum { ABI_RUN_SETTLED = 1 };

/*
 * What a program does, if that can be said in a few words: then a process may do the same without running it.
 *
 * LAP_...: it adds the thread's time since its last event, which is in one of the thread's variables, to an element whose key is the
 * process and the stack of Python functions, and stores the time of this event.
 *
 * START, STOP: the time between two events, self->t = timestamp at one of them and @ = quantize(timestamp - self->t), self->t = 0 at
 * the other; the element is the only one of its aggregation, or its keys follow from the process, the probe, and arg0 and arg1.
 *
 * RECORD: a record, of what follows from the event and the thread.
 */
enum abi_known {
	ABI_KNOWN_NONE,			/* something else */
	ABI_KNOWN_LAP_ALL,		/* it counts the event and adds the time; 0 if there was no event before */
	ABI_KNOWN_LAP_LATER,		/* it only adds the time; nothing if there was no event before */
	ABI_KNOWN_START,		/* it only stores the time of the event */
	ABI_KNOWN_STOP,			/* it adds the time since the stored one, and may store 0; nothing if 0 is stored */
	ABI_KNOWN_RECORD,		/* it only outputs a record */
};

/*
 * How ABI_KNOWN_STOP adds: the value to a word; 1 to the first and the value to the second; 1 to its bucket's.  ABI_STOP_KEEPS, a bit: it
 * does not store 0.
 */
enum abi_stop { ABI_STOP_SUM, ABI_STOP_AVG, ABI_STOP_QUANTIZE, ABI_STOP_WAYS, ABI_STOP_KEEPS = 16 };

/* The fields of ABI_KNOWN_RECORD, four bits each, the first one's the lowest. */
enum abi_field {
	ABI_FIELD_ARG0, ABI_FIELD_ARG1, ABI_FIELD_ARG2, ABI_FIELD_ARG3,		/* an argument, an integer */
	ABI_FIELD_TEXT0, ABI_FIELD_TEXT1,					/* the string at arg0, at arg1 */
	ABI_FIELD_TIME, ABI_FIELD_PID, ABI_FIELD_TID,
	ABI_FIELD_BITS = 4, ABI_FIELD_MOST = 32 / ABI_FIELD_BITS,
};

/* Of struct abi_fire's count_arg; larger than that of any argument that is a text. */
enum { ABI_COUNT_BY_CODE = 3 };

/* A program that a marker of the agent runs; those of the same marker run in this order. */
struct abi_fire {
	abi_u32 marker;			/* number of the marker, in the order of abi/marker.def */
	abi_u32 prog;
	abi_u32 probe;			/* index in the probe table, the program's first argument */
	abi_u32 pid;			/* in this process only; 0: in all */
	abi_u32 uses;			/* arguments that the program reads: bit n for arg n */
	/* If the program is only @[copyinstr(argN)] = count(): 1 + N; if it is another count() and its keys follow from
	 * the process, arg0 and arg1: ABI_COUNT_BY_CODE; else 0; the first of the maps that it counts in, and their number. */
	abi_u32 count_arg, count_map, count_classes;
	/* For functions by name: patterns of the module and the qualified name, as offsets in the texts; the line. */
	abi_u32 module, function, line;
	abi_u32 by_script;		/* 1: __main__ also has the name of its file, without the .py */
	abi_u32 known;			/* enum abi_known */
	union {
		/*
		 * LAP_..., START, STOP: the map of the elements; the map of the thread's variables, and in its value the
		 * offset of the time; the most frames in a stack, or of STOP enum abi_stop.
		 */
		struct { abi_u32 lap_map, lap_threads, lap_last, lap_frames; };
		/* RECORD: abi_record.rec; the fields and their number; the most bytes of a string, with the NUL. */
		struct { abi_u32 rec, rec_fields, rec_nfields, rec_strsize; };
	};
	/* For functions by name: a pattern of the file's path or of its end, 0: any; is @line counted from the first one? */
	abi_u32 file, from_first;
	/* Of ABI_FIRE_AWAY: the first of the values that the program there asks for, and their number. */
	abi_u32 wanted, nwanted;
	abi_u32 lap_classes;		/* of STOP: the number of maps from @lap_map on; 0: there are no keys */
};
_Static_assert(sizeof(struct abi_fire) == 88, "fire of a segment");

/*
 * Events of Python functions given by name: in struct abi_fire.marker from ABI_FUNCTION_FIRST on, above the numbers of
 * the agent's markers.
 */
enum abi_function {
	ABI_FUNCTION_ENTRY,	/* a call begins */
	ABI_FUNCTION_RETURN,	/* it ends, with a value */
	ABI_FUNCTION_RAISE,	/* an exception leaves it */
	ABI_FUNCTION_YIELD,	/* a generator or coroutine is suspended */
	ABI_FUNCTION_RESUME,	/* it is resumed */
	ABI_FUNCTION_LINE,	/* it reaches a line */
	ABI_FUNCTIONS
};

enum { ABI_FUNCTION_FIRST = 64 };

/*
 * In struct abi_fire.prog, for functions by name: the program is in the kernel.  For each such fire the agent fires its
 * marker "function" of provider "dtap", with the arguments that a program in the process would have (file, function and
 * line, as far as @uses names them) and with the address of a struct abi_event.  All tracers of the process see it.
 */
enum { ABI_FIRE_AWAY = 0xffffffff };

struct abi_event {
	abi_u64 session;		/* abi_image.id */
	abi_u32 probe, pad;		/* of struct abi_fire */
	abi_u64 module, function;	/* addresses of the names: the module's and the function's qualified one */
	abi_u64 given;			/* address of what the values are, from the first on; 0: none is asked for */
};
_Static_assert(sizeof(struct abi_event) == 40, "event for a program elsewhere");

/*
 * A value of Python that such a program asks for.  The agent reads all of an event, in this order, before it fires the marker:
 * the parameters of ABI_HELPER_VALUE, of which object and name can be what others before have given.
 */
enum { ABI_WANTED_TEXT = 0xffffffff, ABI_GIVEN_MAX = 1 << 22 /* bytes of the values of one fire */ };

struct abi_wanted {
	abi_u32 what, size;		/* enum abi_value; bytes of the value */
	/* 1 + the value, counted from the fire's first one, that is the object, the name; 0: it is the number below. */
	abi_u32 object_from, name_from;	/* ABI_WANTED_TEXT: it is at the offset @name in the texts */
	abi_u64 object, name;
	abi_u32 off, pad;		/* of its struct abi_given, behind the first one; a multiple of 8 */
};
_Static_assert(sizeof(struct abi_wanted) == 40, "value for a program elsewhere");

struct abi_given {
	abi_s64 ret;			/* as ABI_HELPER_VALUE returns it */
	abi_u64 value;			/* a number, or the first bytes of a string; of a fault its object */
};
_Static_assert(sizeof(struct abi_given) == 16, "a value");

/* Entries of the probe table after the session's own, for functions that matched patterns: see abi_data.named. */
enum { ABI_NAMED_MAX = 65536 };

struct abi_image {
	abi_u32 magic, version;		/* ABI_SEGMENT_MAGIC, ABI_VERSION */
	abi_u64 size;			/* of the image */
	abi_u64 data_size;
	abi_u32 nmaps, nprogs, nfires, nlanes;
	abi_u64 lanes_off, lane_size;	/* in the data; multiples of ABI_ALIGN */
	abi_u64 id;			/* random: the session's */
	abi_u64 number;			/* of the segment, one for each trust domain; a process maps only one */
	abi_u32 flags;			/* ABI_SEGMENT_* */
	abi_u16 ranges, unwind;		/* 1 + number of the map of abi_ranges by process, of abi_unwind; 0: none */
	abi_u32 texts_off, texts_size;	/* of the patterns, each with its NUL, in the image; 0: none */
	abi_u32 probes;			/* 1 + number of the probe table's map if it has room for names; else 0 */
	abi_u32 nprobes;		/* the number of its entries that are the session's own */
	abi_u32 nwanted, pad;
	/* struct abi_map[], struct abi_prog[], struct abi_fire[], struct abi_wanted[] follow */
};
_Static_assert(sizeof(struct abi_image) == 104, "segment's image");

/*
 * Converts the processor's cycle counter to CLOCK_MONOTONIC: base_ns + ((tsc - base_tsc) * mult >> 32).  The tracer
 * updates it regularly; seq is odd during an update.
 */
struct abi_clock {
	abi_u32 seq;
	abi_u32 usable;			/* 0: call clock_gettime(2) */
	abi_u64 base_tsc, base_ns, mult;
};
_Static_assert(sizeof(struct abi_clock) == 32, "clock of a segment");

struct abi_data {
	struct abi_control control;
	struct abi_clock clock;
	abi_u32 lanes_high;		/* lanes from this number on were never taken */
	abi_u32 woken;			/* 1: the tracer was woken, but has not looked yet */
	abi_u64 failed_runs;		/* runs that ended by an access out of bounds: the segment is corrupt */
	abi_u64 no_lane;		/* events lost because all lanes were taken */
	/*
	 * Number of entries of the probe table, after abi_image.nprobes, that processes have taken for functions by
	 * name; atomic.  An entry is a copy of its pattern's except for the names and the pattern's index; it is
	 * complete before a record has its number.
	 */
	abi_u32 named, pad;
};
_Static_assert(sizeof(struct abi_data) == 192, "start of a segment's data");

/* The header of a lane. */
struct abi_lane {
	abi_u32 owner;			/* the owner's pid, 0: free; changed by compare-and-swap */
	abi_u32 busy;			/* 1: a program runs on it */
	abi_u32 changing;		/* 1: a table's index is being changed; stays 1 if the owner is killed */
	abi_u32 given_back;		/* how often an element was taken from its key; used only by the owner */
	abi_u64 owner_start;		/* when the owner started, to recognise a later process with the same pid */
	/* Written by the owner; never set back, so that a later owner goes on from there. */
	abi_u64 events;			/* that have come to the session */
	abi_u64 spent_ps;		/* what its events have cost the owner, in 10^-12 s */
	abi_u64 reserved[3];
	/* The ring buffer: total bytes written and read. */
	abi_u64 head __attribute__((aligned(64)));	/* written by the owner */
	abi_u64 tail __attribute__((aligned(64)));	/* written by the tracer */
	/* Written by the tracer: 1 + how often it has given back memory of the ring; 0: it does not say. */
	abi_u64 released;
	abi_u64 reserved2[6];
};
_Static_assert(sizeof(struct abi_lane) == 192, "lane's header");

/* Before each record in a ring: its size, a multiple of 8; or this: skip the rest of the ring. */
enum { ABI_RING_SKIP = 0xffffffff };

/* The name of the memory that has a segment's code in a process, for memfd_create(2): a new file each time. */
#define ABI_CODE "dtap-code"

struct abi_table {
	abi_u32 used;			/* elements allocated from the front so far */
	abi_u32 free;			/* LANE_HASH: 1 + first of the freed elements, chained by next */
	abi_u64 free_tagged;		/* SHARED_HASH: the same in the low half, a count of changes in the high */
	abi_u32 live;			/* approximate number of elements in use */
	abi_u32 dead;			/* LANE_HASH: not 0 if the tracer has removed elements; atomic */
	abi_u32 mask;			/* LANE_HASH: of the index, the words that are in use - 1; the first ABI_TABLE_FIRST always
					   are, and all others are 0 */
	abi_u32 pad;
	abi_u64 reserved[4];
};
_Static_assert(sizeof(struct abi_table) == 64, "table's header");

/*
 * An index grows to ABI_TABLE_GROWTH times its words when half of them are in use: keys that come and go touch the pages that
 * so many at once need, not one page each.
 */
enum { ABI_TABLE_FIRST = 64, ABI_TABLE_GROWTH = 8 };

enum abi_elem_state {
	ABI_ELEM_FREE,
	ABI_ELEM_LIVE,
	ABI_ELEM_DEAD,			/* removed by the tracer from a lane's table: the owner revives or reuses it */
	ABI_ELEM_NEW,			/* of a shared table: complete, but may not be in a chain yet */
};

struct abi_elem {
	abi_u32 state;			/* enum abi_elem_state */
	abi_u32 hash;
	abi_u32 next;			/* 1 + the next in its chain or in the free list; 0: the last */
	abi_u32 pad;
};
_Static_assert(sizeof(struct abi_elem) == 16, "element of a table");

#endif
