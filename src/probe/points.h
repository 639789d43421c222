/*
 * SystemTap's probe points as probes: the resolver that the language asks, over a probe set.
 *
 * SystemTap names files, not processes: a point holds for whoever runs the file, now or later, unless it names
 * a process id, or is the bare "process", which is the target of -c or -x alone.  Each point found has one
 * probe of the set, made when it is found; its name is the point as pp() shows it.
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

/* What the points are resolved against; texts outlive it. */
struct points_conf {
	const char *command;		/* of -c, or NULL */
	uint32_t pid;			/* of -x, or 0 */
	const char *sysroot;		/* in front of paths, or NULL */
	uint32_t held;			/* the command's process, held at an exec; 0: it was not started */
	bool skip_badvars;		/* context variables that cannot be had are 0 */
	const char *agent;		/* dtap's agent, which has Python's markers where interpreters lack them; or NULL */
	bool agent_always;		/* also where they have them */
	/* Let the held process go on to another program: false when it will not.  NULL with @held 0. */
	bool (*next_image)(void *ctx);
	void *ctx;
};

/* Memory comes from @a, which may be the compilation's.  points_free closes files; it accepts NULL. */
struct points *points_new(struct arena *a, struct probe_set *set, const struct points_conf *conf);
void points_free(struct points *p);

struct stp_resolver points_resolver(struct points *p);

/* The probe of a point that was found, or NULL.  Of a point that means several: the @i-th, NULL behind the last. */
struct probe *points_probe(const struct points *p, const struct stp_point *found);
struct probe *points_probe_at(const struct points *p, const struct stp_point *found, size_t i);

/* A probe of PROBE_BEGIN, END or FAILED that no script names: dtap's own. */
struct probe *points_own(struct points *p, enum stp_point_kind kind);

/*
 * The markers that the agent supplies, as session/supply.h wants them described, in the arena: those of the points
 * found, of process @pid or (0) of any; or, before the command is started, those that the points of @prog could
 * need, their target being any number.
 */
size_t points_supplied(const struct points *p, uint32_t pid, const struct probe_desc **ret);
size_t points_foresee(struct points *p, const struct stp_prog *prog, const struct probe_desc **ret);

/*
 * What the agent supplies fires in every process that has it, but for points of a program, whose probe knows that
 * (exe_ino).  Where that is not so, or does not help, it is asked for by process: add the probe of @found for process
 * @pid.  NULL: it has no part in this, its own probe is what there is.
 */
struct probe *points_in_process(struct points *p, const struct stp_point *found, uint32_t pid);

/*
 * Is process @pid running a program, or linked to a library, that is to have a marker from the agent?  The same of programs
 * alone, which takes little time, and no memory.
 */
bool points_is_supplied(struct points *p, uint32_t pid);
bool points_is_supplied_program(const struct points *p, uint32_t pid);

/* Was there a point with a mark in a CPython? */
bool points_found_python(const struct points *p);

/* Add to @out what the agent supplies: "function__entry of /usr/bin/python3.13". */
void points_say_supplied(const struct points *p, struct strbuf *out);

/* Add the point's context variables to @out as stap -L has them: " $arg1:long $arg2:long". */
void points_vars(const struct points *p, const struct stp_point *found, struct strbuf *out);

#endif
