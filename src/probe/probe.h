/*
 * Probes, which users name, and sites, which are armed for them.
 *
 * A probe has four names and fires in one way (enum probe_kind).  A site is a position in a file: an offset, a
 * semaphore, locations of arguments.  An inlined marker has many sites and is one probe for each function that
 * contains it; processes that run the same file share its sites but have separate probes.  So the relation is many to
 * many.
 *
 * A probe set has the probes found so far and searches for more.  Providers do the search, one file each
 * (providers.def); nothing here arms anything or prints.  Ids are assigned in the order of discovery, from 1, and
 * last as long as the set; BEGIN, END and ERROR are always 1, 2, 3.
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
struct file;
struct probe_set;
struct strbuf;
struct type_source;

/* Where a probe is armed.  Two sites differ in file, offset, semaphore, operands or event. */
struct site {
	struct file *file;		/* in which it was found; the site holds a reference */
	uint64_t dev, ino;		/* of the file, as /proc/PID/maps has them */
	uint64_t off, sem_off;		/* sem_off 0: no semaphore */
	uint64_t shared_sem_off;	/* of another site there: all breakpoints of a place have the same semaphore */
	const char *args_text;		/* the note's text of the operands */
	unsigned int nargs;
	struct arch_operand args[PROBE_MAX_ARGS];
	enum ebpf_gil gil;		/* fires at this event of Python's lock (pygil.h) */
	bool ret;			/* fires when the function that starts here returns */
	bool skips_caller;		/* a function's start, where a walk by frame pointers misses the caller */
	struct site *next;		/* list of the set */
};

/* How a probe fires. */
enum probe_kind {
	PROBE_BEGIN,	/* once, before any other */
	PROBE_END,	/* once, after all others */
	PROBE_ERROR,	/* when another probe's clause faults */
	PROBE_TICK,	/* every period_ns on one CPU */
	PROBE_PROFILE,	/* every period_ns on each CPU */
	PROBE_EVENT,	/* after a number of the kernel's perf events, or when memory is used */
	PROBE_SITES,	/* when a process executes one of its sites */
	PROBE_TP,	/* at a tracepoint of the kernel */
	PROBE_FUNCTION,	/* at an event of a function of Python, given by name: agent_marker says which event */
	PROBE_INPUT,	/* for each byte of the tracer's standard input: argument 0 */
	PROBE_FAILED,	/* once, instead of END, when faults ended the session */
	PROBE_READ,	/* when the session's owner asks for the values of variables */
};

struct probe {
	uint32_t id;
	const char *prov, *mod, *func, *name;	/* never NULL */
	enum probe_kind kind;
	uint32_t pid;			/* SITES, EVENT: fires only in this process; 0: in all, also in later ones */
	uint64_t exe_dev, exe_ino;	/* SITES, EVENT: of the only program in which it fires; exe_ino 0: in all */
	bool pid_suffix;		/* prov is a base name, to which the firing process's pid is appended */
	uint64_t period_ns;		/* TICK, PROFILE */
	struct ebpf_tp *tp;		/* TP: the set's */
	const struct ebpf_event *event;	/* EVENT */
	uint64_t random_ns;		/* TICK: each period is longer or shorter by up to this time */
	uint8_t agent_marker;		/* SITES: of the agent: 1 + the marker's number; 0: given by its names.
					   FUNCTION: 1 + ABI_FUNCTION_FIRST + enum abi_function */
	uint8_t twin;			/* SITES, the interpreter's own: 1 + the number of the agent's marker with the same
					   events, which the process also has; 0: none */
	uint32_t line;			/* FUNCTION: line of ABI_FUNCTION_LINE */
	const char *const *params;	/* FUNCTION in a listing: its parameters, "n", "*rest" */
	uint32_t nparams;
	bool by_script;			/* FUNCTION: the file's name stands for the module __main__, too */
	bool from_first;		/* FUNCTION: line is counted from the function's first one, which is 0 */
	const char *file;		/* FUNCTION: a pattern of its file's path, or of a part of that behind a slash; NULL: any */
	int64_t order;			/* BEGIN, END, FAILED: in ascending order, equal ones by id */
	struct probe_sig sig;
	struct site **sites;
	unsigned int nsites;
	size_t sites_cap;
	struct probe *next;		/* private to the set, like found */
	uint32_t found;
};

/*
 * The purpose of probe_find.  It matters only for a provider pattern that matches any pid, like python* or an empty
 * one.
 */
enum probe_want {
	PROBE_LIST,	/* one probe for each existing process, for listings */
	PROBE_ENABLE,	/* instead one system-wide probe, also for later processes: pid 0, pid_suffix */
};

struct probe_list {
	struct probe **probes;
	size_t n, cap;
};

/*
 * Which of CPython's markers come from dtap's agent, an object loaded into the interpreter: those that are missing or
 * unsound (probe/python.def), all, or none.  EITHER: as AUTO, but processes that are named get the agent also for sound
 * markers of which it supplies the same events; both are known then (probe.twin).
 */
enum python_mode { PYTHON_AUTO, PYTHON_ALWAYS, PYTHON_NEVER, PYTHON_EITHER };

/* Create a set with BEGIN, END and ERROR.  NULL: out of memory.  The caller frees it. */
struct probe_set *probe_set_new(void);
void probe_set_free(struct probe_set *set);	/* frees probes and sites; accepts NULL */

/*
 * Find the probes that @desc describes and append them to @out, each once, in the order of their ids; returns their
 * number.  @out's array belongs to the set.  Each call looks at the running processes again, so call it again when a
 * process has mapped more files; files already read are cached.  Unreadable processes that match a pattern are
 * skipped.
 *
 * A process that @desc names and that was forked just now gets half a second to execute its program.
 *
 * A target's pid is already in the description ("python1234").  For an unknown id the whole system is listed first,
 * so that numbers of an earlier dtrace -l are mostly valid.
 */
size_t probe_find(struct probe_set *set, const struct probe_desc *desc, enum probe_want want,
		  struct probe_list *out);

/*
 * For a process that is being started: does @desc name something that exists only after the dynamic loader has run?
 * And, for such a description, is its module mapped?
 */
bool probe_wants_libraries(const struct probe_desc *desc);
bool probe_has_module(const struct probe_desc *desc);

/* Does @desc name what process @pid has only if it is a Python: "python1234" or "py1234"? */
bool probe_wants_python(const struct probe_desc *desc, uint32_t pid);

/*
 * Is @desc about markers of any program, and so of programs that start later as well?  A pattern for the provider says
 * so.  Python's have a way of their own (session/supply.h).
 */
bool probe_wants_programs(const struct probe_desc *desc);

/* From now on, searches of all processes look only at process @pid; 0: at all again. */
void probe_set_only(struct probe_set *set, uint32_t pid);

/*
 * With @hold: from now on, a process is looked at once for all descriptions that name it (a look takes 0.1 ms), until it executes
 * another program, for a second at most.  Without: for each description again.
 */
void probe_hold(struct probe_set *set, bool hold);

/* From now on find only the probes of the machine, and look at no process. */
void probe_set_general(struct probe_set *set);

/* Why the last probe_find could not search everything: "process 12: Permission denied", or "". */
const char *probe_why(const struct probe_set *set);

/* Why the last probe_find() may have missed what there is: -EMFILE, -EIO and such.  Else 0. */
int probe_trouble(const struct probe_set *set);

/* A hint for @desc, for which probe_find has just found nothing: a sentence in @a, or NULL. */
const char *probe_hint(struct probe_set *set, const struct probe_desc *desc, struct arena *a);

/*
 * Set how Python's markers are chosen (initially PYTHON_NEVER).  @agent is the path of the agent's object, whose
 * probes are found in each CPython that can load it; NULL: only in those that have loaded it.  Returns NULL, or why that
 * object cannot be read: then the mode is PYTHON_NEVER.
 */
const char *probe_set_python(struct probe_set *set, enum python_mode mode, const char *agent);

/* From PYTHON_AUTO to PYTHON_EITHER and back: for probes that are found from now on. */
void probe_set_either(struct probe_set *set, bool either);
bool probe_is_either(const struct probe_set *set);

/*
 * Can agents fire all that the descriptions name, with the same events as the interpreters themselves, in processes that
 * are named, and does that change anything?  Beside such probes there can be those that the tracer fires.
 */
bool probe_agent_replaces(struct probe_set *set, const struct probe_desc *descs, size_t n);

/*
 * In the kernel, functions of Python by name fire where agents fire their marker for them: give @p, such functions, these sites:
 * of this tracer's agent, and of others that its process, or (pid 0) any process, has loaded by now.
 */
void probe_add_agents(struct probe_set *set, const struct probe *p);

/* Can @desc match a marker of the agent in some process? */
bool probe_agent_named(struct probe_set *set, const struct probe_desc *desc);

/* Does the agent serve @desc in this process? */
bool probe_agent_serves(struct probe_set *set, uint32_t pid, const struct probe_desc *desc);

/*
 * The same for a process that started after the probes were found.  The agent also serves a description of any
 * process if the interpreter's own markers are in a file in which no probe was found.
 */
bool probe_agent_serves_later(struct probe_set *set, uint32_t pid, const struct probe_desc *desc);

/* Is process @pid, which has just executed a program, a Python? */
enum probe_is_python {
	PROBE_PYTHON_GONE,	/* it has ended, or cannot be read */
	PROBE_PYTHON_NO,	/* no, unless it loads one later, as a plug-in */
	PROBE_PYTHON_LOADING,	/* it is linked to a Python library, which is not mapped yet */
	PROBE_PYTHON_YES,		/* yes; its interpreter may still be starting */
	PROBE_PYTHON_UNKNOWN,	/* it cannot be told: no memory, no descriptor, its file cannot be read; errno says which */
};
enum probe_is_python probe_is_python(struct probe_set *set, uint32_t pid);

/* Would the agent serve @desc in the interpreter @path, if it were started? */
bool probe_agent_needed(struct probe_set *set, const char *path, const struct probe_desc *desc);

/* Call @fn for the processes with a CPython that can load the agent, in the order of pids. */
int probe_agent_each(struct probe_set *set, void (*fn)(void *ctx, uint32_t pid), void *ctx);

/*
 * The markers of a process that were found in the interpreter itself, and so need no agent; bits as in abi/agent.h.
 */
uint32_t probe_agent_leave(struct probe_set *set, uint32_t pid);

/* Append which of the found probes the agent supplies to @out: "function-entry and line of Python 3.13". */
void probe_agent_say(const struct probe_set *set, struct strbuf *out);

/* The number (enum abi_marker) of the agent's marker for @p; -1: none. */
int probe_marker(const struct probe *p);

/* The same, also if the probe is the interpreter's own marker and the agent has its twin. */
int probe_marker_or_twin(const struct probe *p);

/* The arguments of that marker, bit n for arg n, for which the agent remembers what they settled (abi/segment.h). */
uint32_t probe_settling(const struct probe *p);

/* The probe with number @id, from 1; NULL after the last. */
struct probe *probe_get(const struct probe_set *set, uint32_t id);

/* The set as the resolver of a compilation: descriptions are looked up as PROBE_ENABLE. */
struct resolver probe_resolver(struct probe_set *set);

/*
 * The kernel's types for a compilation with arena @a; @set must outlive it.  They are read when a script first names
 * one.
 */
const struct type_source *probe_types(struct probe_set *set, struct arena *a);

/* Set the process whose program's types (struct a.out`x) later compilations can use; 0: none. */
void probe_set_target(struct probe_set *set, uint32_t pid);

/* The argument's C type for a listing; if unknown, int32_t, uint64_t, double ... by size. */
const char *probe_arg_type(const struct probe_arg *arg);

/*
 * The location of argument @n of @site for the code generator.  Returns NULL, or why it cannot be read (out->loc is
 * then EBPF_LOC_NONE).
 */
const char *probe_site_arg(const struct site *site, unsigned int n, struct ebpf_operand *out);

#endif
