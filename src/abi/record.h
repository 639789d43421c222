/*
 * Layouts shared by the tracer, the eBPF programs and the agent; each is defined only here.
 *
 * A record is the output of one clause of one firing: a header, the clause's integer fields in 8-byte slots,
 * then the bytes of its strings.  A string field's slot holds the offset of its first byte from the start of
 * the record in the low 32 bits, and its length with the NUL in the high 32.
 *
 *	0        8        16       24       32 + 8*nfields
 *	| time   |clause  |tid|pid |cpu|size| slots ...  | strings, each with its NUL ... |
 *	         |probe   |
 */
#ifndef DTAP_ABI_RECORD_H
#define DTAP_ABI_RECORD_H

#ifdef __bpf__
typedef unsigned char abi_u8;
typedef unsigned short abi_u16;
typedef short abi_s16;
typedef int abi_s32;
typedef unsigned int abi_u32;
typedef long long abi_s64;
typedef unsigned long long abi_u64;
#else
#include <stdint.h>
typedef uint8_t abi_u8;
typedef uint16_t abi_u16;
typedef int16_t abi_s16;
typedef int32_t abi_s32;
typedef uint32_t abi_u32;
typedef int64_t abi_s64;
typedef uint64_t abi_u64;
#endif

/*
 * The version of the interface between the tracer of one build and the agent of another: the records, the control block
 * and the segment (record.h, segment.h, task.def), and the numbers of helpers and markers.  An agent remains in its
 * process, and installed in virtual environments, when dtap is updated: an agent of another version refuses the segment
 * with a message.  Raise the version with each incompatible change; tests/unit/abi detects changes.  What only the
 * tracer and its own programs share (stat.h, python.h, unwind.h) has no version.
 */
enum { ABI_VERSION = 15 };

struct abi_record {
	abi_u64 time_ns;	/* CLOCK_MONOTONIC at the firing */
	abi_u32 rec;		/* struct ir_rec's id, or ABI_REC_ERROR */
	abi_u32 probe;		/* index of the fired probe in the session's table */
	abi_u32 tid, pid;
	abi_u32 cpu;
	abi_u32 size;		/* bytes, with this header; a multiple of 8 */
	/* abi_u64 slots[] follow */
};
_Static_assert(sizeof(struct abi_record) == 32, "record header");

/* Why a clause ended early: the fault types of the DTrace guide, "dtrace Provider", table of ERROR's arg4. */
enum abi_fault {
	ABI_FAULT_NONE = 0,
	ABI_FAULT_BADADDR = 1,		/* value: the address */
	ABI_FAULT_BADALIGN = 2,
	ABI_FAULT_ILLOP = 3,
	ABI_FAULT_DIVZERO = 4,
	ABI_FAULT_NOSCRATCH = 5,	/* value: the size asked for */
	ABI_FAULT_KPRIV = 6,
	ABI_FAULT_UPRIV = 7,
	ABI_FAULT_TUPOFLOW = 8,
	ABI_FAULT_BADSTACK = 9,
	ABI_FAULT_BADSIZE = 10,		/* value: the size */
	ABI_FAULT_BADINDEX = 11,	/* of an array; value: the index */
	/* SystemTap's: */
	ABI_FAULT_ACTIONS = 16,		/* too many statements */
	ABI_FAULT_NESTING = 17,		/* calls nested too deep */
	ABI_FAULT_OVERFLOW = 18,	/* an array is full; value: its maximum number of elements */
	ABI_FAULT_EMPTY = 19,		/* a statistic without values */
	ABI_FAULT_ERROR = 20,		/* from the script's error() */
	ABI_FAULT_TIME = 21,		/* it took longer than the kernel allows */
	/* Reading values of the traced language; value: the object, if there is one */
	ABI_FAULT_VALUE_KIND = 22,	/* its type is not the expected one */
	ABI_FAULT_VALUE_NONE = 23,	/* there is no such argument, variable, attribute or item */
	ABI_FAULT_VALUE_COMPUTED = 24,	/* reading it would run code of the program */
	ABI_FAULT_VALUE_RANGE = 25,	/* a number that does not fit in 64 bits */
	ABI_FAULT_VALUE_UNKNOWN = 26,	/* its location in this interpreter is unknown */
	ABI_FAULT_VALUE_CHANGES = 27,	/* other threads change it, or what it was found in, while it is read */
	ABI_FAULT_MAX,
};

/* The record of a fault: its slots are the probe's id, the clause's (struct ir_clause), the number of the instruction,
 * enum abi_fault, value: ERROR's arg1 to arg5, as in DTrace for Linux. */
enum { ABI_REC_ERROR = 0xffffffff, ABI_ERROR_SLOTS = 5 };

/*
 * The record of a stack, or of one address, that a program has not seen before: its slots are the number that
 * identifies it in fields and keys, ABI_STACK_* with the requested number of frames in the high 32 bits, and the
 * addresses, innermost first.  It precedes the first record with the number.  The rest of the record are Python frames
 * (abi/python.h); ABI_STACK_ADDRS of the flags is then the number of addresses.
 */
enum { ABI_REC_STACK = 0xfffffffe };
enum {
	ABI_STACK_USER = 1,	/* addresses of the process, not of the kernel */
	ABI_STACK_PYTHON = 2,
	ABI_STACK_NATIVE = 4,	/* in the target place: native frames are requested, too */
	ABI_STACK_FUNCTIONS = 8,	/* Python frames without position in the function: abi_pyframe.instr is -1 */
	ABI_STACK_AWAITERS = 16,	/* in the target place: behind the running task's frames those of the tasks that wait for it */
	ABI_STACK_INSTRUCTIONS = 32,	/* Python frames are shown with abi_pyframe.instr, too */
};
#define ABI_STACK_ADDRS(FLAGS) ((FLAGS) >> 8 & 0xff)

/* What a program knows of the probe that fired: one entry of the session's probe table, by abi_record.probe. */
struct abi_probe {
	abi_u32 id;			/* as dtrace -l shows it */
	abi_u32 epid;			/* of the probe's first clause; the others follow */
	abi_u32 flags;			/* ABI_PROBE_* */
	abi_u32 pattern;		/* of a match of a pattern: 1 + the pattern's index in the table; else 0 */
	char prov[64], mod[64], func[192], name[64];	/* cut, with a NUL: DTRACE_PROVNAMELEN ... of the guide */
};
_Static_assert(sizeof(struct abi_probe) == 400, "probe table entry");

enum { ABI_PROBE_PID_SUFFIX = 1 };	/* the provider's name is prov followed by the firing process's pid */

/* Losses that are counted. */
enum abi_drop {
	ABI_DROP_RECORD,	/* the output stream was full */
	ABI_DROP_AGG,		/* no room for a new key of an aggregation */
	ABI_DROP_DYNVAR,	/* no room for an associative array's or thread-local variable's element */
	ABI_DROP_BUSY,		/* all scratch slots of the CPU were taken by preempted programs */
	ABI_DROP_ITER,		/* no room for an iteration over an array */
	ABI_DROP_LOCK,		/* a clause was skipped because locks that it needs were held too long */
	ABI_DROP_STACK,		/* the stack of a thread that got the CPU was not known */
	ABI_DROP_MAX,
};

/* The state that the tracer and its programs share. */
enum abi_state {
	ABI_STATE_OFF,
	ABI_STATE_ACTIVE,
	ABI_STATE_DRAINING,	/* tracing is over, but records must still be read and END fired */
	ABI_STATE_WARMUP,	/* BEGIN is fired */
	ABI_STATE_COOLDOWN,	/* END is fired; exit() has no further effect */
};

struct abi_control {
	abi_u32 state;			/* enum abi_state; unless ACTIVE, only the tracer's own firings run */
	abi_u32 pad;
	abi_u64 walltime_off_ns;	/* add to CLOCK_MONOTONIC for CLOCK_REALTIME */
	abi_u64 drops[ABI_DROP_MAX];	/* added to atomically */
	abi_u64 target_pid;		/* $target, or 0 */
	abi_u64 errors;			/* number of SystemTap's errors so far; added to atomically */
	abi_u64 interpreted;		/* an errno: why a traced process cannot compile its programs; 0: all can */
	abi_u64 sched_off_ns;		/* add to CLOCK_MONOTONIC for the scheduler's clock */
	abi_u64 named;			/* functions that programs in the kernel have entered in the probe table; atomic */
	abi_u64 reserved[2];
};
_Static_assert(sizeof(struct abi_control) == 128, "control block");

#endif
