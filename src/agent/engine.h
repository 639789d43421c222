/* SPDX-License-Identifier: MIT */
/*
 * The engine: programs of tracers that run in this process when a marker fires, over memory that the tracer reads
 * (abi/segment.h).  A marker that only the engine wants fires no semaphore and no breakpoint.
 *
 * A segment is taken in by engine_receive() without the GIL; engine_update() with it makes new ones active and takes
 * those away whose channel has ended.  Hooks ask engine_wanted() and call engine_fire(), with the GIL.
 */
#ifndef AGENT_ENGINE_H
#define AGENT_ENGINE_H

#include <stdbool.h>
#include <stdint.h>

#include "abi/record.h"
#include "agent/code.h"
#include "agent/marker.h"
#include "vm/add.h"

/* This process as the tracer calls it; @other_pids: from another pid namespace. */
struct engine_who {
	uint32_t pid;
	bool other_pids;
};

/*
 * Take in the segment of the files @fds (image, data, wake; they stay the caller's but for wake, which is taken
 * over), which came over channel @channel.  0 or -errno with a reason in *why.
 */
int engine_receive(uint64_t channel, const int fds[3], const struct engine_who *who, const char **why);
/* The channel has ended: its segments go with the next engine_update(). */
void engine_channel_ended(uint64_t channel);

bool engine_changed(void);
/* Markers that some program wants, as enum want; engine_update() is behind it when engine_changed(). */
void engine_update(void);
/* Have the C library tell of forks: with the GIL, once, before any segment comes. */
void engine_watch_forks(void);
/*
 * In a child of fork: it goes on with the programs that are for all processes, in lanes of its own, and waits for its
 * own channel to the tracer to take them over.  When it turns out that there will be none: engine_orphaned().
 */
void engine_forked(void);
void engine_orphaned(void);

extern unsigned engine_markers;				/* enum want; written with the GIL */
extern unsigned char engine_uses[WANT_COUNT];		/* by marker: arguments that programs read, bit n for argument n */

#define engine_wanted(name) __builtin_expect((engine_markers & WANT_##name) != 0, 0)
#define engine_reads_line(marker) ((engine_uses[marker] & 4) != 0)

enum { ENGINE_ARGS = 4 };

/* Of engine_run() at the last event: the frame that it has on the stack. */
extern const void *engine_frame;

/* Run what wants @marker.  Changes errno.  The arguments whose bits are in @strings end in a NUL, or are 0. */
void engine_run(enum want_index marker, uint64_t arg0, uint64_t arg1, uint64_t arg2, uint64_t arg3, unsigned strings);

/* The same in an interpreter with a GIL of its own. */
void engine_run_beside(enum want_index marker, const uint64_t args[ENGINE_ARGS], unsigned strings);

static inline void engine_fire(enum want_index marker, const uint64_t args[ENGINE_ARGS], unsigned strings)
{
	engine_run(marker, args[0], args[1], args[2], args[3], strings);
}

/*
 * What has a single program that counts under a string of the code object, at @off in it, is counted without running
 * that (vm/add.h).
 */
struct engine_count {
	const struct abi_control *control;	/* NULL: there is none */
	struct add_objects in;			/* strings that are known are kept alive */
	const struct shm_run *run;
	uint32_t classes;
	unsigned arg;				/* from 0 */
};

extern struct engine_count engine_counts[WANT_COUNT];

/* After the program has run: the string at @address is @code's. */
void engine_learn(enum want_index marker, struct pyobj *code, uint64_t address);

/* Was all that is wanted of @marker done by counting?  Leaves errno alone. */
static inline bool engine_counted(enum want_index marker, struct pyobj *code)
{
	const struct engine_count *c = &engine_counts[marker];

	return c->control && c->control->state == ABI_STATE_ACTIVE &&
	       add_count_object(&c->in, (uint64_t)(uintptr_t)code);
}

/* The same for the markers with file, function and line of a code object; @line matters only where it is read. */
static inline void engine_fire_code(enum want_index marker, struct pyobj *code, int line)
{
	const struct engine_count *c = &engine_counts[marker];
	unsigned uses = engine_uses[marker];
	uint64_t file = uses & 1 ? (uint64_t)(uintptr_t)code_file(code) : 0;
	uint64_t name = uses & 2 ? (uint64_t)(uintptr_t)code_name(code) : 0;

	engine_run(marker, file, name, (uint64_t)(int64_t)line, 0, 3);
	if (c->run)
		engine_learn(marker, code, c->arg ? name : file);
}

#endif
