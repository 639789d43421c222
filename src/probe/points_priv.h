/*
 * Shared by the files that implement points.h.
 */
#ifndef DTAP_PROBE_POINTS_PRIV_H
#define DTAP_PROBE_POINTS_PRIV_H

#include "probe/points.h"
#include "probe/provider.h"

struct obj_marker;
struct points_target;
struct pylist_function;

enum { POINTS_MAX_LINES = 16, POINTS_MAX_CHAIN = 8 };

struct points_file {
	const char *path;
	struct obj *obj;
	const struct obj_marker *markers;
	size_t nmarkers;
	uint16_t python;	/* version of the CPython in it, or 0 */
	int err;
	const char *why;	/* why it cannot be read */
	struct points_file *next;
};

struct points_found {
	const struct stp_point *point;
	struct probe *probe;
	struct probe **probes;		/* NULL, or all probes of the point, @probe first */
	size_t nprobes;
	const char *prov, *mark;	/* a marker's names */
	const char *supplied;		/* supplied by the agent: the interpreter's file */
	const char *program;		/* then: the program of processes that get it; NULL: those linked to @supplied */
	struct points_file *file;	/* a function's file; it is at the address @pc */
	uint64_t pc;
	struct points_file *around;	/* a marker's file, or NULL */
	uint64_t around_pc;		/* where it stands in it; 0: at several places */
	const char *inlined;		/* name of the inlined function of which it is a copy, or NULL */
	const char *tracepoint;		/* of the kernel */
	bool pyfunc;			/* functions of Python by name, found by the agent */
	const struct pylist_function *listed;	/* a function that exists now */
};

struct points {
	struct arena *arena;
	struct probe_set *set;
	struct points_conf conf;
	struct points_file *files;
	struct points_found *found;
	size_t nfound, found_cap;
	struct points_target *targets;	/* points_debug.c */
	bool python;			/* a point with marks named a CPython */
};

/* The search for the existing points that one point names. */
struct points_search {
	struct points *p;
	const struct stp_point *point;
	const struct stp_point **v;	/* found */
	size_t n, cap;
	const char *why;		/* why nothing was found */
	uint32_t pid;			/* of the process that the point names, or 0 */
	const char *name;		/* points_func.c: the function's */
	bool at_return, statement;
	const char *source;		/* the function's source file, or NULL */
	struct { int first, last; } lines[POINTS_MAX_LINES];	/* of that source file */
	unsigned int nlines;		/* 0: no lines are named */
	bool relative;			/* relative to the function's first line */
	const struct ebpf_tp *tp;	/* points_kernel.c: the tracepoint for processes of a program */
	const char *task;		/* its task, for ktypes.h */
	uint64_t addr;			/* address of the statement or function in the file, or 0 */
	const char *func;		/* the current function */
	const struct points_file *in;
	const char *callee;		/* pattern for called functions, or NULL */
	unsigned int depth;		/* how deep called functions may be, 1: direct calls */
	struct {
		uint64_t return_pc;	/* of a call, in the file */
		int64_t frame;		/* there, from the stack pointer to behind the caller's own return address */
	} chain[POINTS_MAX_CHAIN];	/* the calls that led to the current function, the outermost first */
	unsigned int nchain;
	const char *program;		/* the program whose file it is */
	void (*in_file)(struct points_search *s, const char *path);	/* called for each program or library */
	void (*file)(struct points_search *s, const char *path);	/* private to points_each_file */
};

/* The file at @path, opened once; what is wrong with it is in its err and why. */

/* The file of the program @name (points.c), or NULL. */
const char *points_find_program(struct points *p, const char *name);

struct points_file *points_open(struct points *p, const char *path);

/* The library with CPython that program @f is linked to, or NULL. */
const char *points_linked_python(struct points *p, struct points_file *f);

/* Call s->in_file for each program or library that s->point names; sets s->why if there is none. */
void points_each_file(struct points_search *s);

/* Add the existing point @point, with full names, whose probe is @probe. */
void points_add(struct points_search *s, const struct stp_point *point, struct probe *probe);

/*
 * Copies of points to complete: of @point; of s->point with the program or library that was found; set the text of
 * component @name.
 */
struct stp_point *points_copy(struct points *p, const struct stp_point *point);
struct stp_point *points_in_file(struct points_search *s, const char *path);
void points_set(struct points *p, struct stp_point *point, const char *name, const char *text);

/* The component @name of @point, or NULL; its text, or NULL. */
const struct stp_comp *points_comp(const struct stp_point *point, const char *name);
const char *points_text(const struct stp_point *point, const char *name);

/* The set's probe for @point, which fires like @key. */
struct probe *points_make(struct points *p, const struct stp_point *point, struct probe *key);

/* The same for a point with several probes, which the set distinguishes by @prov. */
struct probe *points_make_as(struct points *p, const struct stp_point *point, struct probe *key, const char *prov);

/* points_pyfunc.c: python3.module(...).function(...); points_found_pyfunc: was there one? */
void points_find_pyfuncs(struct points_search *s, bool at_return);
bool points_pyfunc_target(struct points *p, bool at_return, const struct stp_node *target, struct stp_source *source,
			  const char **why);
void points_pyfunc_vars(const struct points_found *f, struct strbuf *out);
bool points_is_pyfunc(const struct stp_point *point);
bool points_found_pyfunc(const struct points *p);

/* points_mark.c */
void points_find_marks(struct points_search *s);
bool points_mark_target(struct points *p, const struct points_found *f, const struct stp_node *target,
			struct stp_source *source, const char **why);

/* points_python.c: the agent's object for the C library that @f is linked to; NULL: none, or @f is no Python. */
struct points_file *points_agent_for(struct points *p, const struct points_file *f);

/*
 * points_python.c: the file that supplies marker @name of provider "python" for @f: @f itself, or the agent's object;
 * NULL: none.
 */
struct points_file *points_python_file(struct points *p, struct points_file *f, const char *name);

/* points_python.c: probe.agent_marker for the agent's marker @name. */
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
/* $return, located by the calling convention. */
/* @var with a module: a variable of another file than the point's. */
bool points_debug_elsewhere(struct points *p, const struct points_found *f, const struct stp_node *target,
			    struct stp_source *source, const char **why);

/* How far a process has the program @file from the file's addresses; false: it is a library, of which that is not known. */
bool points_debug_bias(const struct points_file *file, struct arena *a, struct stp_source *source);
bool points_debug_result(struct points *p, const struct points_found *f, const struct stp_node *target,
			 struct stp_source *source, const char **why);
bool points_cast(struct points *p, const struct points_found *f, const struct stp_node *cast, struct stp_source *source,
		 const char **why);
/* -> and [] after a value with a target. */
bool points_deref(struct points *p, const struct stp_node *deref, struct stp_source *source, const char **why);
/* The target for pointers to the kernel's structure @type (ktypes.h). */
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

/* points_event.c */
void points_find_perf(struct points_search *s);
void points_find_data(struct points_search *s);

/* points_similar.c: "no match (similar @what: ...)" with names from @name, which returns NULL after the last. */
const char *points_similar(struct points_search *s, const char *what, const char *pattern,
			   const char *(*name)(const void *ctx, size_t i), const void *ctx);

#endif
