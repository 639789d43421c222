/*
 * Files with markers: read once and remembered by device and inode, also when they have none.
 */
#ifndef DTAP_PROBE_MODULE_H
#define DTAP_PROBE_MODULE_H

#include "probe/probe.h"
#include "probe/python.h"

struct arena;
struct procs_map;

/* A marker's site with all that a probe needs of it. */
struct marker {
	const char *prov, *func;
	const char *raw;	/* the name as the note has it */
	const char *name;	/* with dashes */
	struct site site;
	bool is_used;		/* a description to be enabled has found it */
	bool is_named;		/* and has named its file */
};

struct module {
	struct module *next;
	uint64_t dev, ino;
	const char *path, *name;	/* name: the base name of the path in its process */
	struct marker *markers;
	size_t nmarkers;
	struct python_facts python;
	const char *why;		/* the file was refused: why, else NULL */
	bool is_unread;			/* it could not even be opened */
};

/* The module of a mapped file. */
struct module *module_get(struct probe_set *set, const struct procs_map *map);

/* The module of a file by its name, or NULL when there is no such file. */
struct module *module_open(struct probe_set *set, const char *path);

#endif
