/*
 * Files that processes execute: each is read once, whether it has markers or not, and known by device and inode.
 *
 * A module is counted: whoever looks at a process uses its modules while it looks, and a module whose markers became probes
 * belongs to the set for good (module_keep), since sites and signatures have its texts.  Of those that nobody uses the latest
 * are remembered, so that the next process with the same files costs no reading.  On a machine on which containers come and
 * go each brings files of its own.
 */
#ifndef DTAP_PROBE_MODULE_H
#define DTAP_PROBE_MODULE_H

#include "probe/probe.h"
#include "probe/python.h"

struct arena;
struct modules;
struct obj_marker;
struct procs_map;

/* A marker's site, with all that a probe needs. */
struct marker {
	const char *prov;
	const char *func;	/* NULL: not known yet (module_func) */
	uint64_t addr;
	const char *raw;	/* the name in the note */
	const char *name;	/* with dashes */
	const struct obj_marker *note;	/* what the operands are read from: args and typed operands are its own */
	struct site site;	/* without operands (module_site) */
	const struct marker_type {
		const char *native, *type;	/* the type that the program passes, and the one that scripts see */
	} *types;			/* of each argument, or NULL if the file does not have them */
	const uint64_t *calls;		/* of an event of Python's lock: the sites' offsets (module_gil_calls) */
	size_t ncalls;
	bool is_searched;		/* they have been looked for */
	bool is_used;		/* a description to be enabled matched it */
	bool is_named;		/* and named its file */
};

struct module {
	struct module *next;		/* in its bucket */
	struct module *before, *after;	/* among those that nobody uses */
	uint32_t users;
	bool is_kept;			/* the set has its texts; one of the users */
	uint64_t dev, ino;
	const char *name;		/* the base name of the path in its process */
	char *own_name;			/* its memory */
	struct arena *arena;		/* of what it has if it has markers; else NULL */
	struct file *file;		/* stays open if it has markers; else NULL */
	struct marker *markers;
	size_t nmarkers;
	bool is_whole;			/* they have their functions and operands, too */
	struct python_facts python;
	char *why;			/* why the file was refused; else NULL */
	bool is_unread;			/* it could not be opened */
	int trouble;			/* why what is in it is not known: -EIO, or for a shortage; 0: none */
};

/* The modules of a set; never NULL.  modules_free() also frees those that are in use. */
struct modules *modules_new(void);
void modules_free(struct modules *all);

/* The number of modules that are remembered. */
size_t modules_count(const struct modules *all);

/* The module of a mapped file.  The caller is a user of it, until module_drop(). */
struct module *module_get(struct modules *all, const struct procs_map *map);

/* The same of a file by its name; NULL: there is no such file. */
struct module *module_open(struct modules *all, const char *path);

/* Become one more user; returns @m. */
struct module *module_use(struct modules *all, struct module *m);

/* No longer use @m.  Accepts NULL. */
void module_drop(struct modules *all, struct module *m);

/* Its texts are used from now on. */
void module_keep(struct modules *all, struct module *m);

/*
 * The function that @mk, a marker of @m, is in; "": it is not known.  module_in_func(): does @func, a pattern, match it?
 * module_site(): its site with the operands.  They take the file's symbols, which are not read before.
 */
const char *module_func(const struct module *m, const struct marker *mk);
bool module_in_func(const struct module *m, const struct marker *mk, const char *func);
const struct site *module_site(const struct module *m, const struct marker *mk);

/* Find the calls of @mk, a marker of Python's lock in @m (pygil.h).  False: they are not known. */
bool module_gil_calls(struct module *m, struct marker *mk);

#endif
