/*
 * A place: where the programs of one session run.  It owns the session's maps and programs and whatever fires
 * them; freeing it takes all down.  kernel.h and target.h make one each; the session knows this only.
 *
 * Functions that can be refused return a negative errno and leave one line in @err (without "dtrace:" and
 * without a newline) that names the object and the remedy.
 */
#ifndef DTAP_PLACE_PLACE_H
#define DTAP_PLACE_PLACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "abi/record.h"
#include "bpf/ebpf.h"

struct place;
struct strbuf;

/* One place in a file to be armed. */
struct place_site {
	const char *path;	/* that this process can open; the file is held by its inode from then on */
	uint64_t off;		/* of the instruction in the file */
	uint64_t sem_off;	/* of the semaphore in the file, 0: none */
	uint32_t probe;		/* index in the probe table */
	bool ret;		/* fire when the function that starts there returns */
};

/* A marker of the agent to be armed. */
struct place_marker {
	uint32_t marker;	/* its number, in the order of agent/marker.h */
	uint32_t probe;
	uint32_t pid;		/* in this process only; 0: in all that have the session's segment */
	uint32_t uses;		/* arguments that the program reads: bit n for arg n */
	uint32_t count_arg, count_map, count_classes;	/* as in struct abi_fire */
};

/* NULL where a place cannot do it: the session then does not ask. */
struct place_ops {
	void (*free)(struct place *p);

	/* The block shared with the programs; stays the place's. */
	struct abi_control *(*control)(struct place *p);

	/* Set entry @index of the probe table. */
	int (*set_probe)(struct place *p, uint32_t index, const struct abi_probe *probe);

	/*
	 * Load @prog (which must outlive the place): its handle, from 0 on, or a negative errno.  @multi: what
	 * use_multi said for the sites that it is for.  When the kernel's verifier refuses, @log (which may be NULL)
	 * gets its whole log.
	 */
	int (*load)(struct place *p, const struct ebpf_prog *prog, bool multi, struct strbuf *err, struct strbuf *log);

	/*
	 * Fire program @prog at the @n sites, in process @pid or (0) in every process that maps the file, now or later;
	 * then files that have been removed meanwhile are passed over.
	 */
	int (*arm_sites)(struct place *p, int prog, const struct place_site *sites, size_t n, uint32_t pid,
			 struct strbuf *err);
	bool (*use_multi)(const struct place *p, uint32_t pid);

	/* How many sites arm_sites has left out so far: of several it arms those that the kernel takes. */
	size_t (*skipped)(const struct place *p);

	/* Fire @prog for probe @probe every @period_ns of each CPU's time. */
	int (*arm_profile)(struct place *p, int prog, uint64_t period_ns, uint32_t probe, struct strbuf *err);

	/* Fire @prog at the kernel's raw tracepoint @name. */
	int (*arm_tracepoint)(struct place *p, int prog, const char *name, struct strbuf *err);

	/* Let entry @key (EBPF_SYSCALL_KEY) of the table of system calls be @call. */
	int (*set_syscall)(struct place *p, uint32_t key, const struct ebpf_syscall *call);

	/* Fire @prog, compiled for EBPF_CTX_TARGET, at a marker of the agent. */
	int (*arm_marker)(struct place *p, int prog, const struct place_marker *m, struct strbuf *err);

	/* All is loaded and armed; nothing of that is called any more. */
	int (*ready)(struct place *p, struct strbuf *err);

	/* Take all down that fires.  When it returns no program that others fired is still running. */
	void (*disarm)(struct place *p);

	/* Run an EBPF_CTX_RUN program now, here, with the probe's index and arguments. */
	int (*run)(struct place *p, int prog, uint32_t probe, const uint64_t args[10]);

	/* A descriptor that becomes readable when there are many records. */
	int (*out_fd)(const struct place *p);

	/*
	 * Take all records out of the stream, those of one CPU or lane in the order they were written; @record must
	 * copy what it keeps.  Returns how many, or a negative errno, also what @record returned if that was negative.
	 */
	int (*drain)(struct place *p, int (*record)(void *ctx, const void *rec, size_t size), void *ctx);

	/*
	 * Read map number @map: @each gets keys with their values, of per-CPU maps the values of several CPUs one after
	 * the other, each value_size rounded up to 8 bytes, @ncpus of them (1 for other maps).  A key can come
	 * several times, then with the values of other CPUs.  Elements that come or go meanwhile may be missed.
	 */
	int (*map_each)(struct place *p, uint32_t map,
			void (*each)(void *ctx, const void *key, const void *value, unsigned int ncpus), void *ctx);

	/* The only element of an array that is mmapable, as programs have it; stays the place's. NULL: that cannot be. */
	void *(*map_memory)(struct place *p, uint32_t map);

	/* Set an element. */
	int (*map_set)(struct place *p, uint32_t map, const void *key, const void *value);

	/* Remove an element.  -ENOENT when it is not there; an array's element is zeroed instead. */
	int (*map_delete)(struct place *p, uint32_t map, const void *key);
};

struct place {
	const struct place_ops *ops;
	bool in_target;		/* programs for events are EBPF_CTX_TARGET, and only markers of the agent fire */
	bool sleepable;		/* programs for sites may fault pages in */
	bool parallel;		/* several threads may load and arm at the same time */
	bool turns_called;	/* programs with loops must be made so (struct ebpf_env) */
};

/* Accepts NULL. */
static inline void place_free(struct place *p)
{
	if (p)
		p->ops->free(p);
}

static inline struct abi_control *place_control(struct place *p)
{
	return p->ops->control(p);
}

#endif
