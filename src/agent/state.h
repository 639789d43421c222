/* SPDX-License-Identifier: MIT */
/*
 * The agent's state: one for the process (struct agent) and one for each thread (struct agent_thread).  These are
 * global, because callbacks of hooks get no pointer.
 *
 * Each part is written only by its owner, the file of its name.  Unless a comment says otherwise, it is read and
 * written with the GIL; what is marked "atomic" is read and written by any thread.
 *
 * Static data that has no meaning between two calls (buffers too large for the stack, observations while layouts are
 * measured) stays in its file.  So do method definitions: constants that CPython's types require to be writable.
 */
#ifndef AGENT_STATE_H
#define AGENT_STATE_H

#include <stdbool.h>
#include <stdint.h>

#include "abi/agent.h"
#include "abi/python.h"
#include "agent/capi.h"
#include "agent/marker.h"
#include "vm/add.h"
#include "vm/stack.h"

enum { AGENT_HOOKS = 10 };

/* --- the engine --------------------------------------------------------------------------------------- */

/*
 * For a marker with a single program, which counts by a string of the code object (at offset @in.ref), or by what follows from
 * its strings: its events are counted without running the program (vm/add.h).  Of a span with keys (span.h): its elements are
 * known in the same way.
 */
struct engine_count {
	const struct abi_control *control;	/* NULL: no such program, or a span */
	struct add_objects in;			/* strings in the table are kept alive */
	const struct shm_run *run;		/* NULL: nothing is learned */
	uint32_t classes;
	unsigned arg;				/* the string's argument, from 0 */
	bool by_code;				/* by what the program finds */
	uint64_t *word;				/* the count, if there are no keys; else NULL */
};

/*
 * lap.c: if the markers function-entry and function-return have a single program each, which is a lap (abi/segment.h): its
 * events are added without running the program.
 */
struct lap {
	enum abi_known what;			/* ABI_KNOWN_LAP_ALL or ABI_KNOWN_LAP_LATER */
	uint32_t map;				/* of the elements */
};

struct lap_state {
	struct lap at[2];			/* by event: entry, return */
	const struct abi_control *control;	/* NULL: there is none */
	const struct shm_run *run;
	uint32_t threads, last, frames;		/* as in struct abi_fire */
	uint32_t given_back;			/* abi_lane.given_back when the nodes' elements were found */
	unsigned epoch;				/* raised when they are forgotten */
};

/*
 * The program of a marker if it is the only one of all sessions' and nothing else is to be done at its events: turns,
 * vtimestamp.
 */
struct engine_quick {
	const struct vm_prog *prog;		/* NULL: there is no such program */
	struct session *session;
	const struct known *known;		/* what the program does, if that can be done without it; else NULL */
	uint64_t probe;
	bool learns;				/* what its events are is noted: engine_before(), engine_fired() */
	bool straight;				/* engine_is_straight() */
};

enum { ENGINE_ENDED = 64 };

/*
 * A code object for whose events of @markers all programs have returned ABI_RUN_SETTLED, with its file and name, strs that
 * are held: while it refers to them, it is the same to the programs.
 */
struct engine_settled {
	const struct pyobj *code;
	struct pyobj *file, *name;
	unsigned markers;
};

enum { ENGINE_SETTLED = 1 << 14 };

/* How the events of several threads are kept apart: see "turns" in engine.c. */
enum engine_turns {
	ENGINE_BY_GIL,
	ENGINE_IN_TURN,
	ENGINE_SEATED,			/* without a GIL: each thread has its own seat in each session */
};

enum { ENGINE_SEATS = 8 };

/* Says to others whether a thread is at an event.  Never freed; another thread gets that of one that has ended. */
struct engine_mark {
	struct engine_mark *next;
	uint32_t tid;			/* atomic */
	int inside;			/* written by its thread; atomic */
};

struct engine_state {
	unsigned markers;			/* enum want: wanted by some program */
	unsigned char uses[ABI_MARKERS];	/* by marker: arguments read by programs, bit n for argument n */
	struct engine_count counts[ABI_MARKERS];
	struct engine_quick quick[ABI_MARKERS];
	bool functions_quick;			/* events of functions by name need nothing but their programs */
	struct engine_settled *settled;		/* ENGINE_SETTLED of them; NULL: none can be used; atomic */
	bool all_settled;			/* the last event's programs */
	unsigned functions;			/* bits by enum abi_function: wanted by some program, by name */
	unsigned epoch;				/* counts changes of the set of programs */
	bool values;				/* some program wants Python values */
	bool frames;				/* some program looks at the thread (SHM_NOW) */
	const struct shm *vtime;		/* of a session whose programs read vtimestamp, or NULL */
	const void *frame;			/* frame address of engine_run() at the last event */
	struct session *active;
	struct session *pending;		/* pushed by the agent's thread; atomic */
	uint64_t ended[ENGINE_ENDED];		/* channels; 0: a free entry; atomic */
	bool some_ended;			/* atomic */
	bool some_rest;				/* a channel's rest begins or ends; atomic */
	bool forks_told;			/* the C library reports forks */
	bool forked;				/* in a child in which engine_forked() has not been called yet ... */
	struct session *held;			/* ... the parent's sessions */
	/* See "turns" in engine.c. */
	enum engine_turns turns;		/* atomic */
	bool turns_stay;			/* without a GIL: never ENGINE_SEATED again */
	struct engine_mark *marks;		/* of threads; atomic */
	unsigned nmarks;
	int inside;				/* written with the GIL; atomic */
	uint32_t turn;				/* the thread whose turn it is; atomic */
};

/* --- what events cost (cost.h) ------------------------------------------------------------------------ */

/*
 * After the markers: an event of a function by name; a call that the evaluator sees because of those; the way to the
 * programs, for an event that is not only counted; adding a lap; beginning or ending a span; a record.
 */
enum cost_kind { COST_FUNCTIONS = ABI_MARKERS, COST_SEEN, COST_WAY, COST_LAP, COST_SPAN, COST_EMIT, COST_KINDS };

struct abi_lane;

struct cost_state {
	uint32_t slowness;		/* of this machine, in 1/64 of that of cost.def */
	uint32_t ps[COST_KINDS];	/* of the hook, an event */
	struct abi_lane *payers[COST_KINDS];	/* lanes of the first sessions that want such events ... */
	struct abi_lane *nobody;	/* ... or this one */
};

/* --- the channels to tracers -------------------------------------------------------------------------- */

enum { CONTROL_CHANNELS = 32, CONTROL_WAKERS = 16 };

/* @fd is set last and cleared first: 0 means that the row is free, 1 that a thread is filling it. */
struct channel {
	int fd;			/* atomic */
	bool greeted, looked;	/* HELLO was sent; a LOOK was received */
	uint32_t leave;		/* of the last LOOK */
	bool rests;		/* likewise; atomic */
	bool connected;		/* by this process: the tracer sends ASK, and HELLO must wait for that */
	enum { CHANNEL_FREE, CHANNEL_AWAITED, CHANNEL_LATE } start;	/* control_await(); atomic */
	uint64_t proof;		/* the number in the tracer's ASK, or 0 */
	char address[ABI_AGENT_ADDRESS];	/* of the last LOOK: for children of fork; empty: they do not connect */
	uint64_t cookie;
};

/* A socket pair that wakes the agent's thread. */
struct waker {
	int taken;			/* atomic */
	struct channel thread, others;	/* the ends */
};

/* Written without the GIL: by any thread that adds a channel or wakes the agent's thread, else only by the latter. */
struct control_state {
	struct channel channels[CONTROL_CHANNELS];
	/*
	 * Any thread creates a waker if there is none; several may do so at once, or a signal handler while its thread
	 * is creating one.  So each fills its own row, and the first to store it in @waker wins.
	 */
	struct waker wakers[CONTROL_WAKERS];
	int waker;			/* the row in use, counted from 1; 0: none; atomic */
	unsigned duplicates;		/* of descriptors, so far; atomic */
	unsigned left;			/* enum want: what every tracer leaves to the interpreter; atomic */
};

/* --- the agent's thread ------------------------------------------------------------------------------- */

/* Atomic and sequentially consistent, except for @polling and the last two. */
struct watch_state {
	int taking_gil, closing;	/* these two keep the thread and the interpreter's end apart: see watch.c */
	int forking;			/* the same for forks: the number of threads in one */
	int thread;			/* 0 none, 1 starting, else its kernel thread id */
	int last;			/* its id until the kernel has removed it; 0: not known */
	int leave;			/* asks it to end; may be cleared again */
	int pid;			/* the process that these words are about; 0: not known yet */
	bool polling;
	void (*asked)(void);		/* what the main thread is asked to do */
	bool answered;
	bool queued;			/* pending_call() is among the interpreter's pending calls */
	bool wants_gil;			/* the thread waits for the GIL */
	bool sets_up;			/* it sets the agent up, or is about to */
	bool stay_asked;		/* pending_call() has been queued for that, or need not be */
	long long stayed_ms;		/* how long the main thread has stayed for it */
	bool was_wrapped;		/* the allocation of thread states, at some time: see watch.c */
};

/* --- hooks -------------------------------------------------------------------------------------------- */

/* eval.c: the frame evaluator. */
struct eval_state {
	unsigned uses;			/* enum eval_use */
	bool in_chain;			/* another evaluator or the interpreter calls ours */
	capi_evaluator *next;
	capi_evaluator *sub_next;	/* in subinterpreters */
};

enum { SUBINTERP_ASKED = 64 };

/* subinterp.c: from 3.12 on. */
struct subinterp_state {
	bool measured;
	long gil_off;			/* in an interpreter: the pointer to its GIL; 0: not known */
	int64_t asked[SUBINTERP_ASKED];	/* the ids of those that a pending call waits in; 0: a free entry */
};

/* The frame that an evaluator gets before 3.12 (frame.h). */
struct frame_layout {
	bool object;			/* it is a frame object */
	long code_off;			/* in the frame: its code object */
	long globals_off;		/* in the frame: its global variables; -1: not known */
	long instr_off;			/* not an object: pointer to the last instruction begun */
	long first_off, flags_off;	/* in the code object: the first instruction, co_flags */
	long depth_off;			/* in the thread state: int, the recursion depth, or the remaining depth */
	bool depth_falls;		/* it is the remaining depth */
	long overflowed_off;		/* in the thread state: char, whether depth beyond the limit is allowed; or 0 */
	long interp_off, limit_off;	/* in the thread state: its interpreter; in that: int, the depth limit; or 0 */
};

struct hook_eval_state {
	struct frame_layout layout;
	unsigned generation;		/* counts installations and hand-overs to the profile function */
	unsigned wanted;		/* enum want */
	bool handed_over;
	bool asked, usable;		/* measured, once, and the result */
};

struct hook_gc_state {
	struct pyobj *callable;		/* while it is in gc.callbacks */
	const struct pyobj *callbacks;	/* of the main interpreter: to compare, not held */
};

/*
 * importlib's own functions; never released, since a thread may be executing them.  @wrapper: not NULL while it
 * replaces @original.
 */
struct hook_import_state {
	struct pyobj *original, *gcd_import, *wrapper;
	bool in_chain;			/* importlib, or another agent's wrapper, calls ours */
	bool on;
};

enum memory_domain { MEMORY_MEM, MEMORY_OBJ, MEMORY_DOMAINS };
enum { MEMORY_FORMERS = 8 };

/*
 * hook_memory.c.  A wrapper may run while it is being installed or removed: in another interpreter that has its own GIL,
 * or in a thread that breaks the rule to hold it.  So a row of @formers is never changed once @former points to it.
 */
struct hook_memory_state {
	unsigned wanted;		/* enum want; atomic */
	struct pyinterp *main;
	const struct capi_allocator *former[MEMORY_DOMAINS];	/* what the wrappers call; NULL: never wrapped; atomic */
	struct capi_allocator formers[MEMORY_DOMAINS][MEMORY_FORMERS];
	unsigned nformers[MEMORY_DOMAINS];
	void *top[MEMORY_DOMAINS];	/* the domain's malloc at the last look; atomic */
	enum capi_domain asked;		/* a call is made to see whether it gets to that domain's wrapper, or RAW ... */
	bool answered;			/* ... it did */
};

/* function.c: decisions in the extra memory of code objects. */
struct function_state {
	bool asked, usable;
	ssize_t index;			/* of our extra memory */
	long extra_off;			/* in the code object: its extra memory; 0: not known */
	long tag_off;			/* in a dictionary: its version, unique among all dictionaries; 0: none */
	bool places;			/* entries of dictionaries can be compared where they are (function.c) */
	struct pyobj *name_key;		/* "__name__", held */
	int (*get)(struct pyobj *code, ssize_t index, void **extra);
	int (*set)(struct pyobj *code, ssize_t index, void *extra);
};

/* qualname.c: names in the extra memory of code objects before 3.11. */
struct qualname_state {
	bool asked, usable;
	ssize_t index;			/* of our extra memory */
};

/* hook_function.c: events of functions by name. */
struct hook_function_state {
	int tool;			/* 1 + its id in sys.monitoring; 0: none */
	unsigned epoch;			/* the engine's at the last update */
	/* Kinds of events in which steps of tasks begin and end, and tasks are made; bits; 0: not wanted. */
	struct hook_function_tasks { unsigned steps, making; } tasks, had;	/* @had: at the last update */
	struct pyobj *disable;		/* sys.monitoring.DISABLE, held */
	int watcher;			/* 1 + the id of the function watcher; 0: none */
	/* Before 3.12: */
	bool evaluates, handed_over;	/* events come from the evaluator, or from the profile function */
	unsigned generation;		/* counts hand-overs and removals */
};

/* watched.c; @v has room for @room. */
struct watched_list { struct pyobj **v; unsigned n, room; };
struct watched {			/* code objects, by weak references */
	bool lock, open;
	unsigned adding;
	int helper, helper_event;	/* watched_open(): 1 + the second tool's id, 0: none; the event that both have */
	struct watched_list list;
};

struct caught_state {
	bool asked, usable;		/* measured, once, and the result */
	int pop, reraise, push;		/* POP_EXCEPT; from 3.11 on RERAISE and PUSH_EXC_INFO, before -1 */
	struct watched codes;		/* from 3.12 on: where handlers are at work */
	bool shares;			/* others have watched instructions, too */
	struct watched_list frames;	/* before: running frames, not held, whose f_trace_opcodes the agent has set */
};

struct hook_monitoring_state {
	bool has_tool;
	int tool;			/* the id in sys.monitoring */
	int instruction, line;		/* the numbers of its events INSTRUCTION and LINE; the latter 0 where caught.c needs none */
	struct pyobj *disable;		/* sys.monitoring.DISABLE, held */
};

/*
 * Markers that the C profile and trace functions supply.  The profile function is used by the table of hooks (@asked)
 * and by hook_eval (@handed).
 */
struct hook_trace_state {
	unsigned profiling, asked, handed, tracing, lines;	/* enum want, and enum hook_trace_use */
	unsigned functions;		/* enum hook_trace_use: what functions by name need */
};

/* methods.h: a C function of the interpreter. */
struct method_replaced {
	struct capi_method *def;	/* NULL: not known */
	capi_varargs *former;		/* valid if it was replaced once */
	bool in_chain;			/* the definition, or who has replaced it since, calls ours */
};

/* threads.c: new threads. */
struct threads_state {
	unsigned uses;			/* enum threads_use */
	unsigned expected;		/* threads announced but not seen yet */
	uint64_t last_covered;		/* highest id of the threads whose hooks have been set */
	struct method_replaced starters[2];	/* before 3.12: start_new_thread and its old name start_new */
	/* Without a GIL (threadcode.c): */
	int tool;			/* 1 + its id in sys.monitoring; 0: none */
	int local, global;		/* its events in first functions; everywhere */
	struct watched codes;		/* first functions of threads */
};

enum { SLOT_SETTERS = 2 };
enum slot_kind { SLOT_TRACE, SLOT_PROFILE, SLOT_KINDS };

/* What is below our function in a thread. */
struct slot_row {
	struct pythread *thread;
	uint64_t id;
	capi_tracefunc *below;		/* NULL: nothing */
	capi_tracefunc *top;		/* saved, with @obj, while all threads are set at once */
	struct pyobj *obj;
};

/* The slots of all threads for a trace function, or for a profile function. */
struct slot {
	capi_tracefunc *ours;
	bool on;
	long fn_off, obj_off;		/* in the thread state; 0: not measured */
	struct method_replaced setters[SLOT_SETTERS];
	struct slot_row *rows;
	unsigned n, room;
};

/* --- frames and values -------------------------------------------------------------------------------- */

struct pyframes_state {
	bool asked, known;		/* measured, once, and the result */
	uint64_t hidden;		/* the code object for which pyframes_is_hidden() is true; 0: not seen yet */
	const char *linked;		/* the frame that is linked (pyframes_link()), or NULL */
	struct abi_python at;
};

enum { OBJECT_LIVING = 16, OBJECT_EXCEPTION = 4, OBJECT_BUILTINS = 160 };

/*
 * For object.h: results of objectmeasure.c, offsets in bytes; 0: not known, and what depends on it is not read.  @size
 * is the offset of ob_size.
 */
struct object_state {
	bool asked;
	uint32_t type_flags, type_name;
	uint32_t size;
	uint32_t int_digits;		/* after ob_size, whose sign is the int's, or after a tagged word ... */
	bool int_tagged;		/* ... the latter: digits << 3 | sign: 0 positive, 1 zero, 2 negative */
	uint32_t str_length, str_state, str_ascii, str_other;
	unsigned int str_kind;		/* bit number in the state: 3 bits of bytes per character, compact, ASCII */
	uint32_t bytes_data;
	uint32_t tuple_items;
	uint32_t cell_value;
	uint64_t cell;			/* the type of cells */
	/*
	 * In a code object: the numbers of arguments, and the names of the variables, in the order of a frame's slots.
	 */
	uint32_t code_args, code_kwargs, code_flags;
	uint32_t code_names;		/* a tuple of all, with a byte for each in @code_kinds; or (3.9, 3.10) ... */
	uint32_t code_kinds;
	uint32_t code_locals, code_cells, code_frees;	/* ... three consecutive tuples */
	uint32_t frame_locals, function_closure;
	int32_t frame_function;		/* -1: not known */
	/* For attribute.h.  A form is the layout of this version; 0: not known. */
	uint64_t str_type, int_type, bool_type, float_type, function_type, member_type, set_type, frozenset_type;
	uint64_t none, yes, no, ellipsis, not_implemented;
	uint32_t float_value, list_items;
	uint32_t type_mro, type_base;	/* after tp_base: tp_dict, tp_descr_get, tp_descr_set, tp_dictoffset */
	uint32_t type_qualname, type_keys;	/* of a class that the program has created */
	uint64_t type_dealloc;		/* tp_dealloc of such classes, which those of C modules have not */
	uint32_t descr_member, function_qualname;
	uint32_t traceback_next;	/* in a traceback: that of the called function */
	uint32_t exception[OBJECT_EXCEPTION];	/* by object_exception_names */
	/* A dictionary's table: to 3.10; from 3.11 on. */
	enum { OBJECT_KEYS_SIZE = 1, OBJECT_KEYS_LOG2 } keys_form;
	/* The values of instances with shared keys: to 3.10; to 3.12; from 3.13 on. */
	enum { OBJECT_VALUES_PLAIN = 1, OBJECT_VALUES_BEFORE, OBJECT_VALUES_BEHIND } values_form;
	/* Dictionaries managed by the interpreter: 3.11; 3.12; from 3.13 on. */
	enum { OBJECT_MANAGED_TWO = 1, OBJECT_MANAGED_TAGGED, OBJECT_MANAGED_INLINE } managed_form;
	bool has_sets;
	int64_t (*hash)(const void *bytes, ssize_t size);	/* the hash of a str's characters; NULL: not known */
	struct { uint64_t type, dict; } builtins[OBJECT_BUILTINS];	/* types that do not contain their dictionary */
	unsigned nbuiltins;
	/* Objects that are alive during the event; if there are more, they are read like any other object. */
	uint64_t living[OBJECT_LIVING];
	unsigned nliving;
};

/* ccall.c: the operations that call, in 3.11 two of them; 0: no more. */
enum { CCALL_OPS = 2 };
struct ccall_state {
	bool usable;
	uint8_t functions[CCALL_OPS], methods[CCALL_OPS];	/* of any callable; to 3.10 other ones of methods */
	struct pyobj *module_type;
};

/* opened.c: offsets in files of the three layers; 0: not known. */
struct opened_state {
	uint32_t file_fd, buffered_raw, text_buffer;
};

enum { READS_ANSWERS = 64, READS_HELD = 256, READS_TYPES = 8 };

/* reads.c: the notes of this event's answers, one after the other. */
struct reads_state {
	struct reads_row { uint64_t addr, sum; uint32_t size; } *rows;	/* NULL: none are needed */
	uint32_t n;
	bool fails;			/* a lock was held, or there is no more room */
	bool loose;			/* what is read now was not found in locked objects */
	uint64_t held[READS_HELD];	/* objects that are locked */
	unsigned nheld, was_held;	/* their number; at the question's beginning */
	uint64_t types[READS_TYPES];	/* types that the question has met last */
	unsigned ntypes;
	struct reads_answer {
		uint64_t given;		/* the object that was found, or another number */
		uint32_t from, to;	/* its rows */
		bool loose;
		unsigned finder;	/* 1 + the index of the answer that gave the object in question; 0: none did */
	} answers[READS_ANSWERS + 1];	/* the last one: of the question that is being asked */
	unsigned nanswers;
};

/* task.c: where _asyncio and a thread's state store tasks; offsets in bytes, 0: does not exist, or not known. */
struct task_state {
	bool waits;			/* until _asyncio is imported */
	bool asked, known;		/* measured, and the result */
	uint64_t type;			/* _asyncio.Task, held */
	uint64_t coro_type, gen_type;	/* the types of coroutines and generators */
	struct pyobj *current;		/* _asyncio._current_tasks, held, or NULL */
	struct pyobj *modules;		/* sys.modules, held */
	uint64_t module_type;
	long dict_off, loop_off, task_off;	/* in the thread's state */
	uint64_t loop_hash;		/* of the loop's key in the thread's dictionary; 0: not computed yet */
	long name_off, size;		/* in a C task: its name; the size of the task */
	long coro_name_off;		/* in a coroutine object: its qualified name */
	long coro_frame_off;		/* in a coroutine object: its frame, or a pointer to it */
	bool coro_has_frame;		/* the former */
	long coro_off;			/* in a C task: its coroutine */
	/* awaiters.c: the types of asynchronous generators, methods, functions of C, and of futures of C, held */
	bool awaiters;			/* all of this is known */
	uint64_t agen_type, method_type, builtin_type, future_type;
	long callback_off;		/* in a future of C: the first callback; 16 bytes behind it a list of the others */
	/* taskmade.c */
	int created;			/* where a coroutine's frame is that has not begun: pyframes_instruction() */
	struct pyobj *registrar;	/* up to 3.11: the code object of WeakSet.add, held */
	uint64_t starter;		/* from 3.14 on: the type of what a task lets its loop call, held; 0: not seen yet */
};

enum { VARIABLE_HINTS = 128 };

/*
 * The slot where a name was found in a code object: tried first.  @names: the code object's tuple of names, held, or 0; while
 * the code object at this address refers to it, the name is that of the slot.
 */
struct variable_hint {
	uint64_t code, id;
	uint64_t names;
	uint32_t slot;
};

struct variable_state {
	struct variable_hint hints[VARIABLE_HINTS];
};

enum {
	CONTEXT_NODES = 1 << 16,
	CONTEXT_SLOT_BITS = 17, CONTEXT_SLOTS = 1 << CONTEXT_SLOT_BITS,
	CONTEXT_NOTE_BITS = 13, CONTEXT_NOTES = 1 << CONTEXT_NOTE_BITS,
};

enum { CONTEXT_RECENT = 2 };

/* A call of @code in the parent's context.  The node keeps @code alive. */
struct context_node {
	uint64_t code;
	/* The children found last: low bits of their codes, so that only the right one is looked at, and their indices. */
	uint32_t codes[CONTEXT_RECENT], children[CONTEXT_RECENT];
	uint32_t parent;
	uint16_t depth, frames;		/* @depth: at most UINT16_MAX */
	struct abi_elem *laps[2];	/* lap.c: by event; NULL: not known */
	/*
	 * The number of its stack of at most @frames frames in the session that owns @stacks; NULL: not known.
	 */
	const void *stacks;
	uint64_t number;
};
_Static_assert(sizeof(struct context_node) == 64, "a cache line");

/* The note of one frame. */
struct context_note {
	const char *frame, *back;	/* back: the frame's pointer to its caller */
	uint64_t number, caller;	/* of this note and of the caller's, or 0 */
	uint32_t node;
};

/* context.c */
struct context_state {
	bool wanted, on;
	bool at_event;			/* of the hook that sees every call: notes are valid */
	uint64_t code;			/* at an event: its code object */
	struct context_node *entered;	/* at function-entry: the frame's node, or NULL */
	struct context_node *nodes;	/* aligned to its size */
	void *memory;			/* that they are in */
	uint32_t *slots;		/* a hash table of children: index and, in the high half, bits of the hash; 0: free */
	struct context_note *notes;
	uint32_t nnodes;
	uint64_t numbers;
};

/* The result of the last walk, until it is reported to the session: only one event is handled at a time. */
struct stacks_state {
	struct context_node *node;	/* the stack's, or NULL */
	struct pyobj *codes[STACK_WORDS_MAX / 2];
	uint32_t first_code, ncodes;
};

/* --- the whole ---------------------------------------------------------------------------------------- */

struct agent {
	/* agent.c */
	struct capi py;
	bool resolved;			/* capi_resolve() has been called */
	bool asks;			/* it has still to ask for sessions: loaded by the interpreter from its site-packages folder (ask.h) */
	bool asking;			/* the main thread does so now */
	bool is_second;			/* a preloaded copy serves the tracer that started the program */
	enum { AGENT_WAITING, AGENT_SETTING_UP, AGENT_READY, AGENT_OFF, AGENT_ENDED } phase;	/* ENDED: with the interpreter */
	unsigned marker_mask;		/* enum want: markers to be fired; read by marker_wanted() */
	unsigned can, installed, supplied;	/* enum want: markers with usable hooks; requested (atomic); supplied */
	unsigned supplied_by[AGENT_HOOKS];
	char why[ABI_AGENT_WHY];	/* why it is off, or why not all that is requested is supplied */
	bool updating;			/* another thread may get the GIL meanwhile; it must not begin an update */
	bool displaced;			/* C code may have overwritten a slot (slot.h); atomic */
	enum { AUDIT_NONE, AUDIT_ADDED, AUDIT_CALLED } audit_hook;
	/* code.c: offsets in a code object */
	long code_file_off, code_name_off, code_qualname_off;
	long type_name_off;		/* offset in a type that the program has created (typename.h); 0: not known */

	struct engine_state engine;
	struct cost_state cost;
	struct control_state control;
	struct watch_state watch;
	struct eval_state eval;
	struct subinterp_state subinterps;
	struct hook_eval_state hook_eval;
	struct hook_gc_state gc;
	struct hook_import_state import;
	struct hook_memory_state memory;
	struct function_state function;
	struct qualname_state qualname;
	struct hook_function_state functions;
	struct hook_monitoring_state monitoring;
	struct caught_state caught;
	struct hook_trace_state trace;
	struct threads_state threads;
	struct slot slots[SLOT_KINDS];
	struct pyframes_state pyframes;
	struct object_state objects;
	struct ccall_state ccalls;
	struct opened_state opened;
	struct variable_state variables;
	struct reads_state reads;
	struct task_state tasks;
	struct stacks_state stacks;
	struct context_state context;
	struct lap_state laps;
};

/* A thread's C stack (cstack.h). */
struct cstack {
	char *low, *high;	/* it may grow down to @low */
};

/* vtime.c; in ns. */
struct thread_vtime {
	unsigned depth;		/* of nested events; 0: no event */
	uint32_t lead_ns;	/* from the event's beginning to the reading of the thread's clock */
	uint64_t since_ns;	/* CLOCK_MONOTONIC soon after that reading ... */
	uint64_t began_ns;	/* ... and the thread's clock at the event's beginning */
	uint64_t hidden_ns;	/* spent in events so far */
	uint64_t now_ns;	/* vtimestamp at the event */
};

/* cost.c: when an event is measured next. */
struct thread_cost {
	uint32_t left, interval;	/* events to come; events that it will stand for */
	uint32_t random;
};

/* span.c: the element of the thread's variables in a lane; valid while the other three are as they were then. */
struct thread_span {
	struct abi_elem *element;
	const struct abi_lane *lane;
	unsigned epoch;			/* the engine's */
	uint32_t given_back;		/* the lane's */
};

/*
 * Written only by its thread.  Thread-local in the initial-exec model: an access is one instruction and allocates
 * nothing.
 */
struct agent_thread {
	bool busy;			/* the agent is running code of its own, whose audit events are not reported */
	bool allocating;		/* at an event of an allocator: nothing may be allocated from Python */
	uint32_t tid;			/* engine.c: the kernel's; 0: not known yet */
	int *errno_at;			/* agent_errno(); NULL: not asked yet */
	unsigned seated;		/* the engine's epoch for which @seats are right; 0: none */
	unsigned asked;			/* the epoch for which the event's arguments were computed; 0: they are complete */
	bool shares;			/* there was no lane for it: it takes turns, in the sessions' own lanes */
	struct engine_mark *mark;	/* or NULL */
	struct session *seats[ENGINE_SEATS];	/* in the active sessions, in their order */
	/* The objects of the current event, besides its frame; NULL: none. */
	struct pyobj *result;		/* at a return or yield: its value */
	struct pyobj *exception;	/* at a raise: the exception; before 3.12 there may be no object yet */
	struct pyobj *traceback;	/* of that exception, if not stored in it; before 3.12 */
	struct pyobj *arguments;	/* at an audit event: the tuple of arguments */
	const struct ccall *call;	/* at a call of a C function; NULL: at another event */
	char *stack_limit;		/* hook_eval.c: evaluators do not use the stack below; at first STACK_UNKNOWN */
	struct cstack stack;		/* cstack.c */
	bool stack_asked;
	bool in_setter;			/* slot.c: the program is calling a replaced setter */
	uint64_t adopted;		/* threads.c: id of the thread state that was adopted */
	const struct pyobj *first;	/* threadcode.c: the code of its first function while that runs, not held */
	struct thread_vtime vtime;
	struct thread_cost cost;
	struct thread_span span;
	struct abi_elem *last;		/* lap.c: the element of the thread's variables in the lane; valid if ... */
	unsigned last_epoch;		/* ... this is agent.laps.epoch */
};

#define STACK_UNKNOWN ((char *)-1)

extern struct agent agent;
extern __thread struct agent_thread agent_thread;

#endif
