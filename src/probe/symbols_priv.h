/*
 * The facts about processes shared by symbols.c, which names addresses, and walks.c, which tells programs how to walk
 * stacks; private to them.
 */
#ifndef DTAP_PROBE_SYMBOLS_PRIV_H
#define DTAP_PROBE_SYMBOLS_PRIV_H

#include "base/bytemap.h"
#include "probe/symbols.h"

struct arena;
struct ksyms;
struct maplog;
struct procs_map;

/* A file that was mapped somewhere. */
struct object {
	struct object *next;
	uint64_t dev, ino;
	const char *name, *path;
	struct obj *obj;	/* NULL: it cannot be read */
	bool no_python;		/* it was checked, and is not a known Python */
	bool unwound;		/* its rows, if any, are in the tables of abi/unwind.h: */
	uint32_t first, npages, index;
};

struct mapping {
	uint64_t start, end, off;
	struct object *object;
};

struct process {
	uint32_t pid;
	struct mapping *v;	/* on the heap */
	size_t n, cap;
	uint64_t looked;	/* number of the stack for which its mappings were last read */
	uint64_t asked, life;	/* number of the stack for which the log was last asked which program this is, and its answer */
	size_t nunwound;	/* mappings sent to programs */
	unsigned int in_vain;	/* requests of programs that found nothing new */
};

struct symbols {
	struct arena *arena;
	uint32_t npages, nrows;		/* entries of the tables of abi/unwind.h that are in use */
	struct bytemap processes;	/* by pid */
	size_t room;			/* for so many; then those that have ended are forgotten */
	struct object *objects;
	struct ksyms *ksyms;		/* NULL: not read yet */
	struct maplog *log;		/* NULL: not followed */
};

/*
 * The process, known or new; NULL: no memory.  It is valid until the next call, which may forget those that have ended: their
 * stacks have been named by then.
 */
struct process *symbols_process(struct symbols *s, uint32_t pid);

/* Read its mappings.  False: it has ended; what was known is kept. */
bool symbols_look(struct symbols *s, struct process *p);

/* The file of a mapping, opened once. */
struct object *symbols_object(struct symbols *s, const struct procs_map *map);

#endif
