/* SPDX-License-Identifier: MIT */
/*
 * The engine: runs programs of tracers in this process when a marker fires, with memory that the tracer reads
 * (abi/segment.h).  A marker wanted only by the engine needs no semaphore and no breakpoint.
 *
 * engine_receive() accepts a segment without the GIL; engine_update(), with the GIL, activates new ones and removes
 * those whose channel has ended.  Hooks ask engine_wanted() and call engine_fire(), with the GIL.
 */
#ifndef AGENT_ENGINE_H
#define AGENT_ENGINE_H

#include <stdbool.h>
#include <stdint.h>

#include "abi/segment.h"
#include "agent/code.h"
#include "agent/cost.h"
#include "agent/state.h"

/* This process's pid for the tracer; @other_pids: the tracer is in another pid namespace. */
struct engine_who {
	uint32_t pid;
	bool other_pids;
	bool no_memory;		/* its programs must not access memory by system calls (vm/memory.h) */
};

/*
 * Accept the segment with the files @fds (image, data, wake), received over channel @channel.  The caller keeps image
 * and data; wake is taken over on success.  0 or -errno with a reason in *why.
 */
int engine_receive(uint64_t channel, const int fds[3], const struct engine_who *who, const char **why);
/* The programs of a channel are to rest, or to go on (control_rests()), from the next engine_update() on. */
void engine_rest_changed(void);
/* The channel has ended: the next engine_update() removes its segments. */
void engine_channel_ended(uint64_t channel);

bool engine_changed(void);
/* Activate new segments and remove those of ended channels.  engine_changed(): there are some. */
void engine_update(void);
/*
 * Without a GIL: from now on threads take turns, for the state that reading objects at an event has.  False: there is no
 * memory for it.
 */
bool engine_stay_in_turn(void);
/* Have the C library report forks.  With the GIL, once, before the first segment. */
void engine_watch_forks(void);
/*
 * In a child of fork: continue with the programs for all processes, in lanes of its own, until its own channel to the
 * tracer takes them over.  If there will be no such channel: engine_orphaned().
 */
void engine_forked(void);
void engine_orphaned(void);

#define engine_wanted(name) __builtin_expect((__atomic_load_n(&agent.engine.markers, __ATOMIC_RELAXED) & WANT_##name) != 0, 0)
/*
 * Called around an event for which only those arguments are computed that programs read (engine_reads_line(),
 * engine_fire_code()).  Without a GIL the set of programs may change before they run: the event is none of those that come
 * only then.
 */
static inline void engine_begin_arguments(void)
{
	if (__builtin_expect(agent.py.free_threaded, 0))
		agent_thread.asked = __atomic_load_n(&agent.engine.epoch, __ATOMIC_ACQUIRE);
}

static inline void engine_end_arguments(void)
{
	if (__builtin_expect(agent.py.free_threaded, 0))
		agent_thread.asked = 0;
}

#define engine_reads_line(marker) ((agent.engine.uses[marker] & 4) != 0)

/*
 * Functions by name (function.h).  A match is one program that probes one function, found by the patterns of all
 * sessions; valid while agent.engine.epoch is unchanged.
 */
struct session;
struct vm_prog;
struct known;
struct span_element;

struct engine_match {
	struct session *session;
	const struct vm_prog *prog;	/* NULL: it is elsewhere, see the last ones */
	const struct known *known;	/* what it does, if that can be done without it; else NULL */
	bool learns;			/* a span with keys: @element, which is the caller's, is needed */
	struct span_element *element;
	uint32_t probe;			/* index in the probe table: the program's first argument */
	uint32_t line;			/* ABI_FUNCTION_LINE: the line to probe */
	uint32_t uses;			/* arguments that the program reads */
	const struct abi_fire *away;	/* ABI_FIRE_AWAY */
	const char *module, *name;	/* of the function */
};

/* The kinds of events for which the function part of some pattern matches @function; bits by enum abi_function. */
unsigned engine_fits(const char *function);
/* A function of Python: @script is another name of the module, or NULL; @first its first line. */
struct engine_function {
	const char *module, *script, *name, *file;
	uint32_t first;
};

/* Find the programs for events @what of @function, in the order in which they run, @most at most. */
unsigned engine_match(enum abi_function what, const struct engine_function *function, struct engine_match *found, unsigned most);
/* Run the @n programs at an event of @code.  Changes errno. */
void engine_run_matches(const struct engine_match *m, unsigned n, struct pyobj *code, int line);
/*
 * The same for one match whose program reads no line, if there is nothing else to do (struct engine_quick).  False: nothing was
 * done.
 */
bool engine_try_match(const struct engine_match *m, struct pyobj *code);
/* In a child of fork: engine_forked(), if it has not been called yet.  The epoch may change. */
void engine_look_at_forks(void);

/* Objects are read (object.h) between these two, where no program runs; they may be nested.  With the GIL. */
unsigned engine_enter(void);
void engine_leave(unsigned how);

/*
 * Run the programs for @marker.  Changes errno.  The arguments whose bits are in @strings are NUL-terminated strings or
 * 0.
 */
void engine_run(enum abi_marker marker, uint64_t arg0, uint64_t arg1, uint64_t arg2, uint64_t arg3, unsigned strings);

/*
 * The same for a marker whose arguments are a file, a function and a line, if there is only one program to run and
 * nothing else to do (struct engine_quick).  False: nothing was done.
 */
bool engine_try(enum abi_marker marker, uint64_t file, uint64_t name, uint64_t line);
/*
 * The same for function-entry and function-return with the event's values (fire_values()), where engine_is_quick().
 * Changes errno.  @line: only if the program reads it.
 */
bool engine_try_entry(struct pyobj *code, struct pyobj *exception, int line);
bool engine_try_return(struct pyobj *code, struct pyobj *result, struct pyobj *exception, int line);

/* Is there only one program to run? */
static inline bool engine_is_quick(enum abi_marker marker)
{
	return __builtin_expect(agent.engine.quick[marker].prog != NULL, 1);
}

/* Is it, and does nothing need to know of an event besides it: contexts and laps? */
static inline bool engine_is_straight(enum abi_marker marker)
{
	return __builtin_expect(agent.engine.quick[marker].straight, 1);
}

/* In an interpreter without a GIL, before there are hooks and segments: events of several threads come at once. */
void engine_expect_threads(void);

/*
 * With the main interpreter's GIL, before hooks are installed in another one: from now on threads take turns at events,
 * whose GILs may differ.
 */
void engine_expect_subinterpreters(void);
/*
 * In one that has not been expected.  A count that a thread of the main interpreter is adding at this moment may be lost.
 * False: the system does not support it, and there may be no events here.
 */
bool engine_meet_subinterpreter(void);

/* The same in a subinterpreter that may not have been expected. */
void engine_run_sub(enum abi_marker marker, const uint64_t args[ABI_MARKER_ARGS], unsigned strings);

/* With the main interpreter's GIL, or attached to one without: is this thread at an event already? */
static inline bool engine_is_inside(void)
{
	if (__builtin_expect(!__atomic_load_n(&agent.engine.turns, __ATOMIC_RELAXED), 1))
		return agent.engine.inside != 0;
	if (agent_thread.mark && agent_thread.mark->inside)
		return true;
	return agent_thread.tid && __atomic_load_n(&agent.engine.turn, __ATOMIC_RELAXED) == agent_thread.tid;
}

static inline void engine_fire(enum abi_marker marker, const uint64_t args[ABI_MARKER_ARGS], unsigned strings)
{
	engine_run(marker, args[0], args[1], args[2], args[3], strings);
}

/*
 * Run the programs for function-entry or function-return of @code, which happened at @time_ns, before the programs were there;
 * except those of sessions that look at more than the marker's arguments (stacks, values, tasks, vtimestamp).
 */
void engine_replay(enum abi_marker marker, struct pyobj *code, int line, uint64_t time_ns);
/* Count @n such events as lost. */
void engine_lost(uint64_t n);

/* Called after the program has run: learn that the string at @address is @code's. */
void engine_learn(enum abi_marker marker, struct pyobj *code, uint64_t address);

/* Count the event, if programs want nothing else of @marker.  True: that is done.  Keeps errno. */
static inline bool engine_counted(enum abi_marker marker, struct pyobj *code)
{
	const struct engine_count *c = &agent.engine.counts[marker];

	if (!c->control || c->control->state != ABI_STATE_ACTIVE)
		return false;
	if (c->word)
		++*c->word;
	else if (!add_count_object(&c->in, (uint64_t)(uintptr_t)code))
		return false;
	cost_pay(c->in.lane, cost_hook(marker));
	return true;
}

/* Two neighbouring entries for @code. */
static inline struct engine_settled *engine_settled_at(struct engine_settled *all, const struct pyobj *code)
{
	uint64_t h = (uint64_t)(uintptr_t)code;

	return &all[((h >> 7 ^ h >> 21) & (ENGINE_SETTLED / 2 - 1)) * 2];
}

static inline struct pyobj *const *engine_file_of(const struct pyobj *code)
{
	return (struct pyobj *const *)(const void *)((const char *)code + agent.code_file_off);
}

static inline struct pyobj *const *engine_name_of(const struct pyobj *code)
{
	return (struct pyobj *const *)(const void *)((const char *)code + agent.code_name_off);
}

/* Called after programs have run that returned ABI_RUN_SETTLED. */
void engine_settle(enum abi_marker marker, struct pyobj *code);

/* Is it known that for @code no program does anything at @marker? */
static inline bool engine_settled(enum abi_marker marker, const struct pyobj *code)
{
	struct engine_settled *all = __atomic_load_n(&agent.engine.settled, __ATOMIC_RELAXED);
	const struct engine_settled *s;

	if (!all)
		return false;
	s = engine_settled_at(all, code);
	if (s->code != code)
		s++;
	if (s->code != code || !(s->markers >> marker & 1) || s->file != *engine_file_of(code) || s->name != *engine_name_of(code))
		return false;
	cost_pass(marker);
	return true;
}

/* The programs are to run for an event of a code object, after which engine_fired() is called. */
static inline void engine_before(enum abi_marker marker)
{
	const struct engine_count *c = &agent.engine.counts[marker];

	if (c->run && c->by_code && !c->word)
		add_forget_found(c->run, &c->in, c->classes);
}

/* The programs have run for an event of @code, with these arguments: learn from it. */
static inline void engine_fired(enum abi_marker marker, struct pyobj *code, uint64_t file, uint64_t name)
{
	const struct engine_count *c = &agent.engine.counts[marker];

	if (c->run)
		engine_learn(marker, code, c->arg ? name : file);
	if (__builtin_expect(agent.engine.all_settled, 0))
		engine_settle(marker, code);
}

/*
 * engine_fire() for the markers with file, function and line of a code object; @line is used only if a program reads
 * it.
 */
static inline void engine_fire_code(enum abi_marker marker, struct pyobj *code, int line)
{
	unsigned uses = agent.engine.uses[marker];
	uint64_t file = uses & 1 ? (uint64_t)(uintptr_t)code_file(code) : 0;
	uint64_t name = uses & 2 ? (uint64_t)(uintptr_t)code_name(code) : 0;

	engine_before(marker);
	if (!__builtin_expect(engine_try(marker, file, name, (uint64_t)(int64_t)line), 1))
		engine_run(marker, file, name, (uint64_t)(int64_t)line, 0, 3);
	engine_fired(marker, code, file, name);
}

#endif
