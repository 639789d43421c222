/*
 * Where a CPython process's markers come from: from the interpreter's own sites, or from dtap's agent, an object that is
 * loaded into it.  The agent's are taken where the interpreter has none, or one that fires wrongly (python.def); of
 * two that a process has of one name exactly one is used.
 *
 * A description that names a module (python$target:dtap-agent.so::line) has chosen itself.
 */
#ifndef DTAP_PROBE_PYTHON_H
#define DTAP_PROBE_PYTHON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "probe/probe.h"

#define PYTHON_PROVIDER "python"
#define PYTHON_AGENT "dtap-agent.so"	/* the agent's soname, and its module's name, whatever its file is called */

struct module;
struct obj;

/* What a file is to Python. */
struct python_facts {
	uint16_t version;	/* of the CPython in it, 0x030b for 3.11; 0: none, or none that can be told */
	bool is_agent;
};

void python_facts(struct obj *o, struct python_facts *ret);

/* The files of one process and what they are to Python.  Zero-initialise it; it may look at one process after another. */
struct python_process {
	uint32_t pid;
	uint16_t version;
	struct module *agent;		/* in the process, or to be loaded into it; NULL: neither */
	bool loaded;			/* it is in the process */
	struct module **modules;	/* all that it executes, the set's */
	size_t nmodules, cap;
};

/* 0 or a negative errno, and then there are no modules. */
int python_look(struct python_process *p, struct probe_set *set, uint32_t pid);

/* Is marker @name of provider "python" that @desc describes to be taken from module @m of the process? */
bool python_takes(const struct python_process *p, enum python_mode mode, const struct probe_desc *desc,
		  const struct module *m, const char *name);

/* Has the description named a file?  Then that one is meant, be there a better one or not. */
bool python_names_file(const struct probe_desc *desc);

/* What is wrong with a CPython's own marker, or NULL. */
const char *python_unsound(uint16_t version, const char *name);

#endif
