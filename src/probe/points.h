/*
 * SystemTap's probe points as probes: the language's resolver, on a probe set.
 *
 * SystemTap names files, not processes: a point applies to all processes that run the file, now or later, unless it
 * names a process id, or is the bare "process", the target of -c or -x.  Each point found has one probe of the set,
 * created when the point is found; its name is the point as pp() shows it.
 *
 * Man page stapprobes(3stap): "PROBE POINT FAMILIES".
 */
#ifndef DTAP_PROBE_POINTS_H
#define DTAP_PROBE_POINTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "stp/point.h"

struct arena;
struct points;
struct probe;
struct probe_desc;
struct probe_set;
struct strbuf;

/* The context in which points are resolved; texts must outlive it. */
struct points_conf {
	const char *command;		/* command of -c, or NULL */
	uint32_t pid;			/* process of -x, or 0 */
	const char *sysroot;		/* prefix of paths, or NULL */
	int64_t hz;			/* jiffies a second (stp_env) */
	uint32_t held;			/* the command's process, held at an exec; 0: not started */
	bool skip_badvars;		/* unavailable context variables are 0 */
	const char *agent;		/* dtap's agent, for Python's markers that interpreters lack; or NULL */
	bool agent_always;		/* use it also for markers that they have */
	bool listing;			/* for listings: functions of Python are those that exist now */
	/* Let the held process continue to its next exec; false: there is none.  NULL if @held is 0. */
	bool (*next_image)(void *ctx);
	/* Called for each program that a pattern names; or NULL. */
	void (*expanded)(void *ctx, const char *pattern, const char *path);
	void *ctx;
};

/* Memory is from @a, which may be the compilation's arena.  points_free closes files; it accepts NULL. */
struct points *points_new(struct arena *a, struct probe_set *set, const struct points_conf *conf);
void points_free(struct points *p);

struct stp_resolver points_resolver(struct points *p);

/* The probe of a point that was found, or NULL.  For a point with several probes: number @i, NULL after the last. */
struct probe *points_probe(const struct points *p, const struct stp_point *found);
struct probe *points_probe_at(const struct points *p, const struct stp_point *found, size_t i);

/* A probe of kind PROBE_BEGIN, END, FAILED or READ for dtap's own handlers. */
struct probe *points_own(struct points *p, enum stp_point_kind kind);

/*
 * Descriptions, for session/supply.h, of the markers that the agent supplies, in the arena: of the points found, for
 * process @pid or (0) any; or, before the command is started, of all points of @prog that may need one, with any
 * target.
 */
size_t points_supplied(const struct points *p, uint32_t pid, const struct probe_desc **ret);
size_t points_foresee(struct points *p, const struct stp_prog *prog, const struct probe_desc **ret);

/*
 * The agent's markers fire in every process that has it, unless the point is limited to a program (exe_ino).  Where
 * that is not possible, there is a probe for each process: add the probe of @found for process @pid.  NULL: @found
 * needs none, its own probe serves.
 */
struct probe *points_in_process(struct points *p, const struct stp_point *found, uint32_t pid);

/*
 * Does process @pid run a program, or is it linked to a library, that gets markers from the agent?
 * points_is_supplied_program: only programs, which is fast and needs no memory.
 */
bool points_is_supplied(struct points *p, uint32_t pid);
bool points_is_supplied_program(const struct points *p, uint32_t pid);

/* Was a point with a mark found in a CPython? */
bool points_found_python(const struct points *p);

/* Append the markers that the agent supplies to @out: "function__entry of /usr/bin/python3.13". */
void points_say_supplied(const struct points *p, struct strbuf *out);

/* Append the point's context variables to @out as in stap -L: " $arg1:long $arg2:long". */
void points_vars(const struct points *p, const struct stp_point *found, struct strbuf *out);

#endif
