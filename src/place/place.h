/*
 * A place: where the programs of one session run.  It owns the session's maps and programs and whatever fires
 * them; freeing it removes all of that.  kernel.h and target.h create one each; the session uses this interface only.
 *
 * Functions that can fail return a negative errno and leave one line in @err (without "dtrace:" and
 * without a newline) that names the object and the remedy.
 */
#ifndef DTAP_PLACE_PLACE_H
#define DTAP_PLACE_PLACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "abi/record.h"
#include "bpf/ebpf.h"

struct file;
struct place;
struct record;
struct strbuf;

/* One site in a file to be armed. */
struct place_site {
	const struct file *file;	/* the file itself, even if its path leads to another one now */
	uint64_t off;		/* of the instruction in the file */
	uint64_t sem_off;	/* of the semaphore in the file, 0: none */
	uint32_t probe;		/* index in the probe table */
	bool ret;		/* fire when the function that starts there returns */
};

/* A marker of the agent to be armed. */
struct place_marker {
	uint32_t marker;	/* its number, in the order of abi/marker.def */
	uint32_t probe;
	uint32_t pid;		/* in this process only; 0: in all that have the session's segment */
	uint32_t uses;		/* arguments that the program reads: bit n for arg n */
	uint32_t count_arg, count_map, count_classes;	/* as in struct abi_fire, also the next */
	struct ebpf_known known;
	const char *module, *function;	/* for functions by name: patterns; else NULL */
	uint32_t line;
	bool by_script;		/* __main__ also matches by the name of its file */
	bool from_first;	/* as in struct probe, also the next */
	const char *file;
	const struct ebpf_wanted *wanted;	/* for programs in the kernel: values that they ask for */
	uint32_t nwanted;
};

/*
 * What programs have reported so far.  In the target place processes can write anything there: impossible values are
 * ignored and counted in @bad.
 */
struct place_told {
	bool over;			/* a program has ended the session: exit(), too many errors */
	uint64_t drops[ABI_DROP_MAX];	/* what they lost */
	uint64_t bad;			/* number of invalid records, keys and numbers */
	uint64_t errors;		/* SystemTap's */
	int interpreted;		/* why a traced process cannot compile its programs, an errno; 0: all can */
};

/* What fires a program, by how it costs: a breakpoint, one at a return, a tracepoint, a clock or a counter of a CPU. */
enum place_hook { PLACE_SITE, PLACE_SITE_RETURN, PLACE_TRACEPOINT, PLACE_EVENT, PLACE_HOOKS };

/* What events have cost process @pid; 0: one that is not known any more. */
struct place_cost {
	uint32_t pid;
	uint64_t events, spent_ns;
};

/*
 * An operation is NULL if the place does not have it; the session then does not call it.
 *
 * Data that a place returns is a checked copy in the tracer's memory: a process that shares the memory in which
 * programs run cannot change it afterwards, and the sizes and numbers in it are valid.
 */
struct place_ops {
	void (*free)(struct place *p);

	/*
	 * Set values that programs read.  The tracer's value is authoritative: if a process overwrites it, the tracer
	 * restores it when it next looks.
	 */
	void (*set_state)(struct place *p, enum abi_state state);
	void (*set_walltime)(struct place *p, uint64_t off_ns);		/* from CLOCK_MONOTONIC to CLOCK_REALTIME */
	void (*set_sched_clock)(struct place *p, uint64_t off_ns);	/* from it to the scheduler's clock */

	void (*told)(struct place *p, struct place_told *ret);

	/*
	 * The probe for index @probe of a record that is not in the session's own table: a function that a pattern in
	 * that table has matched (abi_probe.pattern).  Owned by the place; NULL: there is none.
	 */
	const struct abi_probe *(*named)(const struct place *p, uint32_t probe);

	/* Set entry @index of the probe table. */
	int (*set_probe)(struct place *p, uint32_t index, const struct abi_probe *probe);

	/*
	 * Load @prog (which must outlive the place).  Returns its handle, from 0 on, or a negative errno.  @multi: the
	 * result of use_multi for its sites.  If the kernel's verifier rejects it, @err (which may be NULL: nobody
	 * wants to know) gets the reason and @log (which may be NULL) the whole log.
	 */
	int (*load)(struct place *p, const struct ebpf_prog *prog, bool multi, struct strbuf *err, struct strbuf *log);

	/*
	 * Fire program @prog at the @n sites, in process @pid or (0) in every process that maps the file, now or later.
	 * Sites in files that have been rewritten since they were found are not armed.
	 */
	int (*arm_sites)(struct place *p, int prog, const struct place_site *sites, size_t n, uint32_t pid,
			 struct strbuf *err);
	bool (*use_multi)(const struct place *p, uint32_t pid);

	/*
	 * How many sites arm_sites has skipped so far because the kernel rejects them (of several sites it arms the
	 * others).  *@changed: the number of further ones, in files that were rewritten.
	 */
	size_t (*skipped)(const struct place *p, size_t *changed);

	/* Fire @prog for probe @probe by @event on each CPU. */
	int (*arm_event)(struct place *p, int prog, const struct ebpf_event *event, uint32_t probe, struct strbuf *err);

	/* Fire @prog at the kernel's raw tracepoint @name. */
	int (*arm_tracepoint)(struct place *p, int prog, const char *name, struct strbuf *err);

	/* Set entry @key (EBPF_SYSCALL_KEY) of the table of system calls. */
	int (*set_syscall)(struct place *p, uint32_t key, const struct ebpf_syscall *call);

	/* Fire @prog, compiled for EBPF_CTX_TARGET, at a marker of the agent. */
	int (*arm_marker)(struct place *p, int prog, const struct place_marker *m, struct strbuf *err);

	/* Everything is loaded and armed; no load or arm operation is called after this. */
	int (*ready)(struct place *p, struct strbuf *err);

	/* Disarm everything.  When it returns, no program is running, except those that the tracer runs itself. */
	void (*disarm)(struct place *p);

	/* Run an EBPF_CTX_RUN program now, in this thread, with the probe's index and arguments. */
	int (*run)(struct place *p, int prog, uint32_t probe, const uint64_t args[10]);

	/* A descriptor that becomes readable when there are many records. */
	int (*out_fd)(const struct place *p);

	/*
	 * Consume all records, those of one CPU or lane in the order in which they were written; @record must copy what
	 * it keeps.  Each is valid for the session's programs (checked.h), with a time between the place's creation and
	 * now.  Returns their number, or a negative errno, also a negative result of @record.
	 */
	int (*drain)(struct place *p, int (*record)(void *ctx, const struct record *rec), void *ctx);

	/*
	 * Read map number @map: @each gets each key with its value.  Per-CPU maps have @ncpus values (other maps 1) one
	 * after the other, each value_size rounded up to 8 bytes.  A key can occur several times, then with the values
	 * of other CPUs.  Elements that are added or removed meanwhile may be missed.  Key and value are valid until
	 * @each returns; the key conforms to the map's layout.
	 */
	int (*map_each)(struct place *p, uint32_t map,
			void (*each)(void *ctx, const void *key, const void *value, unsigned int ncpus), void *ctx);

	/* Write @n bytes at @off of the only element of an array that can be mmapped.  0 or a negative errno. */
	int (*map_write)(struct place *p, uint32_t map, size_t off, const void *bytes, size_t n);

	/* Set an element. */
	int (*map_set)(struct place *p, uint32_t map, const void *key, const void *value);

	/*
	 * Call @each with what events have cost processes since the last call, not more than there was time.  A process can come
	 * several times.
	 */
	void (*costs)(struct place *p, void (*each)(void *ctx, const struct place_cost *cost), void *ctx);

	/* What a firing of @hook costs the process in which it happens, beside the program (ns). */
	uint32_t (*hook_ns)(const struct place *p, enum place_hook hook);

	/*
	 * Disarm everything, for the time being: what is armed meanwhile waits.  Or (@rest false) forget what programs keep for
	 * threads and arm it again, except what is gone; @err has the first other reason why something was not armed.
	 */
	int (*rest)(struct place *p, bool rest, struct strbuf *err);

	/* Forget what programs keep for the threads of process @pid: self-> variables, arrays by thread. */
	void (*forget_threads)(struct place *p, uint32_t pid);

	/* Has process @pid mapped the memory in which programs run?  Only such processes need data about them there. */
	bool (*is_inside)(struct place *p, uint32_t pid);

	/* Remove an element; an array's element is zeroed instead.  -ENOENT: there is no such element. */
	int (*map_delete)(struct place *p, uint32_t map, const void *key);
};

struct place {
	const struct place_ops *ops;
	bool in_target;		/* programs for events are EBPF_CTX_TARGET, and only markers of the agent fire */
	bool sleepable;		/* programs for sites may fault pages in */
	bool parallel;		/* several threads may load and arm at the same time */
	bool turns_called;	/* programs with loops must be compiled for this (struct ebpf_env) */
	bool events_end;	/* set by the session: a program that an event fires may end the session */
};

/* Accepts NULL. */
static inline void place_free(struct place *p)
{
	if (p)
		p->ops->free(p);
}

#endif
