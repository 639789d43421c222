/*
 * What the files behind points.h share.
 */
#ifndef DTAP_PROBE_POINTS_PRIV_H
#define DTAP_PROBE_POINTS_PRIV_H

#include "probe/points.h"
#include "probe/provider.h"

struct obj_marker;
struct points_target;

enum { POINTS_MAX_LINES = 16 };

struct points_file {
	const char *path;
	struct obj *obj;
	const struct obj_marker *markers;
	size_t nmarkers;
	uint16_t python;	/* version of the CPython in it, or 0 */
	int err;
	const char *why;	/* it cannot be read: why */
	struct points_file *next;
};

struct points_found {
	const struct stp_point *point;
	struct probe *probe;
	struct probe **probes;		/* NULL, or all that the point means, @probe first */
	size_t nprobes;
	const char *prov, *mark;	/* a marker's */
	const char *supplied;		/* by the agent: to the interpreter in this file */
	const char *program;		/* of it, then: who is supplied executes this; NULL: is linked to @supplied */
	struct points_file *file;	/* a function is in, at the address @pc */
	uint64_t pc;
	const char *inlined;		/* it is a copy of this one in another, or NULL */
	const char *tracepoint;		/* the kernel's */
};

struct points {
	struct arena *arena;
	struct probe_set *set;
	struct points_conf conf;
	struct points_file *files;
	struct points_found *found;
	size_t nfound, found_cap;
	struct points_target *targets;	/* points_debug.c */
	bool python;			/* a point asked for marks of one */
};

/* One point on its way to those that exist. */
struct points_search {
	struct points *p;
	const struct stp_point *point;
	const struct stp_point **v;	/* found */
	size_t n, cap;
	const char *why;		/* nothing was found: why */
	uint32_t pid;			/* of the process that the point names, or 0 */
	const char *name;		/* points_func.c: the function's */
	bool at_return, statement;
	const char *source;		/* of the file that the function is to be in, or NULL */
	struct { int first, last; } lines[POINTS_MAX_LINES];	/* of it */
	unsigned int nlines;		/* 0: none is named */
	bool relative;			/* to the function's own */
	const struct ebpf_tp *tp;	/* points_kernel.c: of processes of a program */
	const char *task;		/* there: the task, for ktypes.h */
	uint64_t addr;			/* 0, or of the statement or function in the file */
	const char *func;		/* being looked at */
	const struct points_file *in;
	const char *callee;		/* pattern: what the function calls is meant; or NULL */
	const char *program;		/* whose file it is */
	void (*in_file)(struct points_search *s, const char *path);	/* what to do in each program or library */
	void (*file)(struct points_search *s, const char *path);	/* points_each_file's own */
};

/* The file at @path, opened once; what is wrong with it is in its err and why. */
struct points_file *points_open(struct points *p, const char *path);

/* The library with CPython that program @f is linked to, or NULL. */
const char *points_linked_python(struct points *p, struct points_file *f);

/* Call s->in_file for each program or library that s->point names; or s->why. */
void points_each_file(struct points_search *s);

/* One more that exists: @point, spelt out, which @probe is for. */
void points_add(struct points_search *s, const struct stp_point *point, struct probe *probe);

/* A copy to be spelt out; s->point's with the program or library that was found; text @text for component @name of it. */
struct stp_point *points_copy(struct points *p, const struct stp_point *point);
struct stp_point *points_in_file(struct points_search *s, const char *path);
void points_set(struct points *p, struct stp_point *point, const char *name, const char *text);

/* The component @name of @point, or NULL; its text, or NULL. */
const struct stp_comp *points_comp(const struct stp_point *point, const char *name);
const char *points_text(const struct stp_point *point, const char *name);

/* The set's probe for @point, which fires as @key does. */
struct probe *points_make(struct points *p, const struct stp_point *point, struct probe *key);

/* points_mark.c */
void points_find_marks(struct points_search *s);
bool points_mark_target(struct points *p, const struct points_found *f, const struct stp_node *target,
			struct stp_source *source, const char **why);

/*
 * points_python.c: where the marker @name of provider "python" of the file is to be taken from: @f itself, or the agent's
 * object; NULL: there is none.
 */
struct points_file *points_python_file(struct points *p, struct points_file *f, const char *name);

/* points_python.c: struct probe's agent_marker of the agent's marker @name. */
uint8_t points_agent_marker(const char *name);

/* points_func.c */
void points_find_funcs(struct points_search *s, bool at_return);
void points_find_plt(struct points_search *s, bool at_return);
bool points_plt_target(const struct stp_point *point, bool at_return, const struct stp_node *target,
		       struct stp_source *source, const char **why);
void points_find_statements(struct points_search *s);
void points_find_callees(struct points_search *s);
bool points_func_target(struct points *p, const struct points_found *f, bool at_return, const struct stp_node *target,
			struct stp_source *source, const char **why);

/* points_debug.c */
bool points_debug_target(struct points *p, const struct points_found *f, const struct stp_node *target,
			 struct stp_source *source, const char **why);
/* $return, where the convention has it. */
bool points_debug_result(struct points *p, const struct points_found *f, const struct stp_node *target,
			 struct stp_source *source, const char **why);
bool points_cast(struct points *p, const struct points_found *f, const struct stp_node *cast, struct stp_source *source,
		 const char **why);
/* -> and [] behind a value with a target. */
bool points_deref(struct points *p, const struct stp_node *deref, struct stp_source *source, const char **why);
/* What points to the kernel's structure @type (ktypes.h). */
const struct points_target *points_kernel_target(struct points *p, uint32_t type);
void points_debug_vars(const struct points_found *f, struct strbuf *out);

/* points_kernel.c */
void points_find_begin(struct points_search *s);
void points_find_end(struct points_search *s, bool thread);
void points_find_thread(struct points_search *s);
void points_find_syscall(struct points_search *s, bool at_return);
void points_find_trace(struct points_search *s);
bool points_syscall_target(struct points *p, const struct stp_point *point, bool at_return, const struct stp_node *target,
			   struct stp_source *source, const char **why);
bool points_trace_target(struct points *p, const struct points_found *f, const struct stp_node *target,
			 struct stp_source *source, const char **why);
bool points_is_kernel(const char *module);
bool points_kernel_cast(struct points *p, const struct stp_node *cast, const char *type, struct stp_source *source,
			const char **why);
bool points_kernel_deref(struct points *p, uint32_t type, const struct stp_node *deref, struct stp_source *source,
			 const char **why);
void points_trace_vars(const struct points *p, const struct points_found *f, struct strbuf *out);

/* points_similar.c: "no match (similar @what: ...)" of the names that @name gives, NULL behind the last. */
const char *points_similar(struct points_search *s, const char *what, const char *pattern,
			   const char *(*name)(const void *ctx, size_t i), const void *ctx);

#endif
