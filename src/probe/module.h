/*
 * Files with markers: each is read once and cached by device and inode, even if it has none.
 */
#ifndef DTAP_PROBE_MODULE_H
#define DTAP_PROBE_MODULE_H

#include "probe/probe.h"
#include "probe/python.h"

struct arena;
struct procs_map;

/* A marker's site, with all that a probe needs. */
struct marker {
	const char *prov, *func;
	const char *raw;	/* the name in the note */
	const char *name;	/* with dashes */
	struct site site;
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
	struct module *next;
	uint64_t dev, ino;
	const char *name;		/* the base name of the path in its process */
	struct file *file;		/* stays open if it has markers; else NULL */
	struct marker *markers;
	size_t nmarkers;
	struct python_facts python;
	const char *why;		/* why the file was refused; else NULL */
	bool is_unread;			/* it could not be opened */
};

/* The module of a mapped file. */
struct module *module_get(struct probe_set *set, const struct procs_map *map);

/* The module of a file by its name, or NULL when there is no such file. */
struct module *module_open(struct probe_set *set, const char *path);

/* Find the calls of @mk, a marker of Python's lock in @m (pygil.h).  False: they are not known. */
bool module_gil_calls(struct probe_set *set, struct module *m, struct marker *mk);

/* Close the files of all modules in the list. */
void modules_close(struct module *m);

#endif
