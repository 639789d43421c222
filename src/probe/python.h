/*
 * Where a CPython process's markers come from: the interpreter's own sites, or dtap's agent, an object that is loaded
 * into it.  The agent's markers are used where the interpreter's are missing or fire wrongly (python.def); if a
 * process has two of one name, exactly one is used.
 *
 * A description that names a module (python$target:dtap-agent.so::line) chooses by itself.
 */
#ifndef DTAP_PROBE_PYTHON_H
#define DTAP_PROBE_PYTHON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "probe/probe.h"

#define PYTHON_PROVIDER "python"
#define PYTHON_AWAY "dtap"		/* provider of the marker "function", of functions by name for programs in the kernel */
#define PYTHON_AGENT "dtap-agent.so"	/* the agent's soname and module name, whatever its file's name */

struct marker;
struct module;
struct obj;

/* Facts about a file with respect to Python. */
struct python_facts {
	uint16_t version;	/* version of the CPython in it, 0x030b for 3.11; 0: none, or unknown */
	bool is_agent;
};

/* 0, or -EIO: what tells the version could not be read, and is 0. */
int python_facts(struct obj *o, struct python_facts *ret);

/* The files of one process and their facts.  Zero-initialise it; it can be used for one process after another. */
struct python_process {
	uint32_t pid;
	uint16_t version;
	struct module *agent;		/* in the process, or can be loaded into it; NULL: neither */
	bool loaded;			/* it is in the process */
	struct module **modules;	/* all files that it maps for execution, of which it is a user */
	size_t nmodules, cap;
};

/*
 * Look at process @pid.  0, or a negative errno without any modules.  @p: zeros, or a process that was looked at before; after
 * the last look, of either kind, the owner calls python_done().
 */
int python_look(struct python_process *p, struct probe_set *set, uint32_t pid);
void python_done(struct python_process *p, struct probe_set *set);	/* frees what was seen; @p is zeros again */

/* The same for one of many processes that are looked at by turns: what was seen of it in the last second may be told again. */
int python_look_again(struct python_process *p, struct probe_set *set, uint32_t pid);

/* The same for one that is named: what was seen of it by this function since the set holds (probe_hold). */
int python_look_held(struct python_process *p, struct probe_set *set, uint32_t pid);

/* Does module @m of the process supply the marker @name of provider "python" for @desc? */
bool python_takes(const struct python_process *p, enum python_mode mode, const struct probe_desc *desc,
		  const struct module *m, const char *name);

/*
 * The number of the agent's marker whose events are the same as those of the process's own marker @name, if both can
 * be used for @desc (PYTHON_EITHER); else -1.
 */
int python_twin(const struct python_process *p, enum python_mode mode, const struct probe_desc *desc, const char *name);

/* The agent's marker for functions by name whose programs are in the kernel; NULL: it has none, for it is of another version. */
const struct marker *python_away(const struct module *agent);

/* Does the description name a file?  Then that file's markers are used, even if others are better. */
bool python_names_file(const struct probe_desc *desc);

/*
 * The markers that both the agent and CPython have (abi/marker.def).  marker_number(): enum abi_marker of the one
 * with that name in a note, "function__entry"; or -1.  marker_args(): its number of arguments.  marker_type(): the C
 * type of argument @n, from 0, or NULL.
 */
int marker_number(const char *raw);
unsigned int marker_args(int number);
const char *marker_type(int number, unsigned int arg);

/* A marker's name in D: function__entry -> function-entry.  @to has the size of @raw, and can be the same. */
void marker_dash(const char *raw, char *to);

/* Why a CPython's own marker is unsound, or NULL. */
const char *python_unsound(uint16_t version, const char *name);

#endif
