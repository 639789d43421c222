/*
 * The functions that a Python process has now, read from outside.
 *
 * Nothing is loaded into the process; it is not stopped, called or waited for.  Functions are found from sys.modules:
 * those of modules and classes, functions wrapped by decorators, and, by the code that creates them, closures,
 * lambdas and comprehensions.  Functions that are only running, or kept elsewhere (in a list, in an instance), are
 * not found.
 *
 * All data is untrusted and may change while it is read: objects of unexpected types are skipped, lengths and counts
 * are checked, all loops are limited.
 */
#ifndef DTAP_PROBE_PYLIST_H
#define DTAP_PROBE_PYLIST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct arena;
struct strbuf;

enum { PYLIST_PARAMS = 64 };

struct pylist_function {
	const char *module, *name;	/* __name__ of its globals; its qualified name; UTF-8 */
	bool yields;			/* a generator or coroutine, with the probes yield and resume */
	const char *const *params;	/* positional, keyword-only, "*args", "**kwargs"; at most PYLIST_PARAMS */
	uint32_t nparams;
};

struct pylist {
	struct pylist_function *v;	/* each code object once for each module */
	size_t n;
};

/*
 * The functions of process @pid whose module and name match the patterns, in @a.  0; -ENOENT: not a CPython that dtap
 * knows, or without modules yet; -ESRCH; -EPERM and other errors of process_vm_readv(2).  @why gets a line.
 */
int pylist_read(struct arena *a, uint32_t pid, const char *module, const char *name, struct pylist *ret, struct strbuf *why);

#endif
