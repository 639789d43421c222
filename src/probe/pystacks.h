/*
 * What each thread of a Python process does now, read from outside: the stacks of Python frames, and which thread
 * holds the GIL.
 *
 * Nothing is loaded into the process, nothing in it is called, and none of its locks is waited for.  Waiting threads
 * are read without stopping them: a stop would end some of their system calls (signal(7), "Interruption of system
 * calls").  The stack of a running thread is read until two readings are equal; if that does not happen soon, the
 * thread is stopped by ptrace for some 100 us.
 *
 * All data is untrusted: addresses, lengths and counts are checked, and all loops are limited.
 */
#ifndef DTAP_PROBE_PYSTACKS_H
#define DTAP_PROBE_PYSTACKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct arena;
struct pycode;
struct strbuf;
struct symbol;
struct symbols;

/* A lock, or what is built on one. */
struct pystack_object {
	const char *type;	/* "threading.Lock" */
	uint64_t addr;		/* id() */
};

/* A lock that some thread waits for, as a frame has it. */
struct pystack_lock {
	struct pystack_object lock;
	bool in_with;		/* the frame is inside a `with` of it; else it is in a variable */
	bool may_be_free;	/* ... but in the wait() of a condition, which releases its lock */
};

enum pystack_waits {
	PYSTACK_WAITS_UNKNOWN,
	PYSTACK_WAITS_GIL,
	PYSTACK_WAITS_LOCK,	/* for objects[0] */
	PYSTACK_WAITS_THREAD,	/* for the end of a thread, threading.Thread.join() */
};

/* What a thread waits for.  Other threads are indexes of pystacks.v. */
struct pystack_wait {
	enum pystack_waits what;
	bool has_timeout;
	struct pystack_object *objects;	/* the lock, then what it is a part of, the inner first */
	size_t nobjects;
	uint64_t owner;		/* ident of the thread that has the RLock, or that is waited for; 0: unknown */
	size_t owner_index;	/* SIZE_MAX: unknown, or it is no thread any more */
	size_t *inside;		/* threads inside a `with` of the Lock */
	size_t ninside;
	size_t *cycle;		/* a deadlock: who this thread waits for, who that one waits for ..., at last this one */
	size_t ncycle;
	bool cycle_is_sure;	/* else it supposes that who is inside a `with` of a Lock has it */
};

struct pystack_local {
	const char *name, *value;	/* the value as pyvalue.h has it */
};

struct pystack_frame {
	const struct pycode *code;
	uint32_t line;
	bool first;		/* the innermost frame of one call of the evaluator */
	size_t native;		/* the index of that call among the native frames; SIZE_MAX: unknown */
	uint64_t at, code_at, instr;	/* as it was read: addresses, and the offset of the instruction */
	struct pystack_lock *locks;
	size_t nlocks;
	struct pystack_local *locals;
	size_t nlocals;
};

/* A task of asyncio's that has not ended. */
struct pystack_task {
	const char *name;
	uint64_t addr;
	bool runs;		/* it has its turn: its frames are in the thread's stack */
	struct pystack_frame *frames;	/* of its coroutines, the innermost first */
	size_t n;
	uint64_t awaits;	/* the future or other object that the innermost awaits; 0: unknown */
	const char *awaits_type, *awaits_task;	/* its type, or its name if it is a task */
};

struct pystack {
	bool is_python;		/* else it is a thread without Python state, and has only native frames */
	uint64_t ident;		/* threading.get_ident() */
	uint32_t tid;		/* the thread's id in our /proc; 0: unknown */
	const char *name;	/* threading.Thread.name; NULL: unknown, or the thread was not made by threading */
	bool has_gil;
	bool is_unsure;		/* it ran while it was read and could not be stopped, or was creating a frame */
	bool is_cut;		/* there are more frames */
	bool has_locals;	/* the frames' variables were read, at the moment of the frames */
	bool locals_cut;	/* there was no time for some of them, since the thread was stopped for it */
	struct pystack_frame *frames;	/* the innermost first */
	size_t n;
	const struct symbol *natives;	/* the native frames, if they were asked for */
	size_t nnatives;
	bool natives_cut;	/* there are more, which needed an unknown register of a waiting thread */
	struct pystack_wait wait;
	struct pystack_task *tasks;	/* of the loop that the thread runs */
	size_t ntasks;
	bool tasks_cut;		/* there are more */
	uint64_t state, gil_cond;	/* addresses: of the thread's state; of what those wait for who want the GIL, or 0 */
};

struct pystacks {
	uint16_t version;	/* 0x030b for 3.11 */
	bool knows_gil, knows_locks, knows_locals;
	struct pystack *v;	/* by tid, the main thread first; includes threads without Python state */
	size_t n;
};

/* What is read besides the stacks of Python frames. */
enum { PYSTACKS_NATIVES = 1, PYSTACKS_LOCALS = 2 };

/*
 * The stacks of process @pid, in @a; native frames are valid as long as @symbols.  @what: PYSTACKS_....  0;
 * -ENOENT: not a CPython that dtap knows; -ESRCH; -EPERM and other errors of process_vm_readv(2).  @why gets a line.
 * The calling thread may be left as the tracer of a thread that did not stop in time, so it must end.
 */
int pystacks_read(struct arena *a, struct symbols *symbols, uint32_t pid, unsigned int what, struct pystacks *ret,
		  struct strbuf *why);

#endif
