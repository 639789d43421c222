/*
 * Probes: what a user names, and the sites that are armed for it.
 *
 * A probe has four names and fires in one way (enum probe_kind).  A site is a place in a file: an offset, a
 * semaphore, where the arguments are.  A marker that was inlined has many sites and is one probe for each
 * function it is in; the processes that run one file share its sites but each has its own probe.  So the
 * two are many to many.
 *
 * A probe set knows the probes found so far and finds more when asked.  Providers do the finding, one file
 * each (providers.def); nothing here arms anything or prints.  Ids are given in the order of discovery, from
 * 1, and stay for the set's life; BEGIN, END and ERROR are always 1, 2, 3.
 */
#ifndef DTAP_PROBE_PROBE_H
#define DTAP_PROBE_PROBE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "arch/arch.h"
#include "bpf/ebpf.h"
#include "lang/desc.h"

struct arena;
struct probe_set;
struct strbuf;
struct type_source;

/* A place to arm.  Two sites differ in file, offset, semaphore or operands. */
struct site {
	const char *path;		/* opens the file now, maybe through /proc/PID/root */
	uint64_t dev, ino;		/* of the file, as /proc/PID/maps has them */
	uint64_t off, sem_off;		/* sem_off 0: no semaphore */
	const char *args_text;		/* the operands as the note has them */
	unsigned int nargs;
	struct arch_operand args[PROBE_MAX_ARGS];
	bool ret;			/* fires when the function that starts here returns */
	bool skips_caller;		/* a function's start, where frame pointers lead to its caller's caller */
	struct site *next;		/* the set's */
};

/* How a probe fires. */
enum probe_kind {
	PROBE_BEGIN,	/* once, before any other */
	PROBE_END,	/* once, after all others */
	PROBE_ERROR,	/* when another probe's clause faults */
	PROBE_TICK,	/* every period_ns on one CPU */
	PROBE_PROFILE,	/* every period_ns on each CPU */
	PROBE_SITES,	/* when a process runs over one of its sites */
	PROBE_TP,	/* at a tracepoint of the kernel */
	PROBE_FAILED,	/* once, instead of END, when faults ended the session */
};

struct probe {
	uint32_t id;
	const char *prov, *mod, *func, *name;	/* never NULL */
	enum probe_kind kind;
	uint32_t pid;			/* SITES: fires in this process only; 0: in all, also those that start later */
	uint64_t exe_dev, exe_ino;	/* SITES: of the only program in which it fires; exe_ino 0: in all */
	bool pid_suffix;		/* prov is a base name: the firing process's pid belongs behind it */
	uint64_t period_ns;		/* TICK, PROFILE */
	struct ebpf_tp *tp;		/* TP: the set's */
	uint64_t random_ns;		/* TICK: each period is longer or shorter by up to that */
	uint8_t agent_marker;		/* SITES: of the agent, 1 + the marker's number; 0: its names say it */
	int64_t order;			/* BEGIN, END, FAILED: in ascending order, equal ones by id */
	struct probe_sig sig;
	struct site **sites;
	unsigned int nsites;
	size_t sites_cap;
	struct probe *next;		/* these two are the set's */
	uint32_t found;
};

/* What probe_find is asked for.  They differ for a provider pattern that fits any pid, like python* or none. */
enum probe_want {
	PROBE_LIST,	/* one probe for each process there is, as a listing shows them */
	PROBE_ENABLE,	/* instead, one system-wide probe that reaches later processes: pid 0, pid_suffix */
};

struct probe_list {
	struct probe **probes;
	size_t n, cap;
};

/*
 * Which of CPython's markers come from dtap's agent, an object loaded into the interpreter: where its own are missing or
 * unsound (probe/python.def), always, never.
 */
enum python_mode { PYTHON_AUTO, PYTHON_ALWAYS, PYTHON_NEVER };

/* A set with BEGIN, END and ERROR in it, or NULL when there is no memory.  The caller frees it. */
struct probe_set *probe_set_new(void);
void probe_set_free(struct probe_set *set);	/* accepts NULL; probes and sites go with it */

/*
 * Find the probes that @desc describes and append them to @out, each once, in the order of their
 * ids; returns how many.  @out's array belongs to the set.  What runs is looked at anew each time, so ask
 * again when a process has mapped more; files already read are remembered.  Processes that a pattern
 * stumbles over and that cannot be read are passed over.
 *
 * A target's pid is already in the description ("python1234").  An id not given yet makes the whole system
 * be listed first, so that numbers of an earlier dtrace -l mostly hold.
 */
size_t probe_find(struct probe_set *set, const struct probe_desc *desc, enum probe_want want,
		  struct probe_list *out);

/*
 * Of a process that is being started: does what @desc names only exist when the dynamic loader has done its work?
 * And, for such a description, is the module there that it names?
 */
bool probe_wants_libraries(const struct probe_desc *desc);
bool probe_has_module(const struct probe_desc *desc);

/* Why the last probe_find found less than it was asked for: "process 12: Permission denied", or "". */
const char *probe_why(const struct probe_set *set);

/* What to do about @desc, for which probe_find has just found nothing: a sentence in @a, or NULL. */
const char *probe_hint(struct probe_set *set, const struct probe_desc *desc, struct arena *a);

/*
 * From now on Python's markers are chosen by @mode (before: PYTHON_NEVER).  @agent is the path of the agent's object,
 * whose probes are found in each CPython that could be given it; NULL: only in those that have it.
 */
void probe_set_python(struct probe_set *set, enum python_mode mode, const char *agent);

/* Could @desc mean a marker of the agent, in some process? */
bool probe_agent_named(struct probe_set *set, const struct probe_desc *desc);

/* Does @desc mean a marker of the agent in this process? */
bool probe_agent_meant(struct probe_set *set, uint32_t pid, const struct probe_desc *desc);

/*
 * The same of a process that has come after the probes were found.  Where its interpreter's own markers are in a file
 * that none of them is in, the agent serves a description of any process.
 */
bool probe_agent_meant_later(struct probe_set *set, uint32_t pid, const struct probe_desc *desc);

/* Is a process that has just executed a program a Python? */
enum probe_hope {
	PROBE_HOPE_NONE,	/* it has ended, or is none of ours */
	PROBE_HOPE_SMALL,	/* no, unless it loads one later, as a program with plug-ins might */
	PROBE_HOPE_SOON,	/* it is linked to one, which is not mapped yet */
	PROBE_HOPE_IS,		/* yes; its interpreter may still be starting */
};
enum probe_hope probe_agent_hope(struct probe_set *set, uint32_t pid);

/* The same of a program that would be started: the interpreter @path itself, were it one. */
bool probe_agent_needed(struct probe_set *set, const char *path, const struct probe_desc *desc);

/* The processes that run a CPython which could be given the agent, in the order of pids. */
int probe_agent_each(struct probe_set *set, void (*fn)(void *ctx, uint32_t pid), void *ctx);

/* Of a process: the markers that were found in the interpreter itself, to be enabled; bits as in abi/agent.h. */
uint32_t probe_agent_leave(struct probe_set *set, uint32_t pid);

/* Add to @out what the agent supplies of the probes found: "function-entry and line of Python 3.13". */
void probe_agent_say(const struct probe_set *set, struct strbuf *out);

/* The agent's marker that @p means, as its number in the order of agent/marker.h; -1: none of the agent's. */
int probe_marker(const struct probe *p);

/* All probes of the set, by id from 1: NULL behind the last. */
struct probe *probe_get(const struct probe_set *set, uint32_t id);

/* The set as the resolver of a compilation: descriptions are looked up as PROBE_ENABLE. */
struct resolver probe_resolver(struct probe_set *set);

/*
 * The kernel's types for a compilation whose arena is @a; @set outlives it.  They are read when a script first names one.
 */
const struct type_source *probe_types(struct probe_set *set, struct arena *a);

/* The process whose program's types these are, too (struct a.out`x); 0: none.  For compilations from then on. */
void probe_set_target(struct probe_set *set, uint32_t pid);

/* The argument's C type for a listing: the known one, or int32_t, uint64_t, double ... by size. */
const char *probe_arg_type(const struct probe_arg *arg);

/*
 * Where argument @n of @site is, in the code generator's terms.  NULL, or why it cannot be read (out->loc is
 * then EBPF_LOC_NONE).
 */
const char *probe_site_arg(const struct site *site, unsigned int n, struct ebpf_operand *out);

#endif
