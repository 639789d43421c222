/*
 * The kernel place: programs run in the kernel, when uprobes, perf events or the tracer itself fire them.
 *
 * A kernel_place owns the maps and programs of one session and everything they are attached to; freeing it
 * detaches all.  Should the tracer die without freeing it, the kernel closes its file descriptors and does
 * the same: breakpoints go, semaphores return to what they were, the target runs on.
 *
 * Works on libbpf's low-level calls, and on bpf(2) itself for uprobe_multi links, which Debian 12's libbpf
 * does not know.  Sources: include/uapi/linux/bpf.h, include/uapi/linux/perf_event.h; kernel 5.17 or later.
 *
 * Functions that can be refused return a negative errno and leave one line in @err (without "dtrace:" and
 * without a newline) that names the object and the remedy.
 */
#ifndef DTAP_PLACE_KERNEL_H
#define DTAP_PLACE_KERNEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "abi/record.h"
#include "bpf/ebpf.h"

struct kernel_place;
struct strbuf;

/* What this kernel can do, found out by asking it. */
struct kernel_features {
	bool uprobe_multi;	/* one link for many sites (6.6) */
	bool multi_pid;		/* whose pid filter means the process, not its first thread (6.10) */
	bool sleepable;		/* uprobe programs that may fault pages in (6.0) */
};

/*
 * May this process use BPF and uprobes at all?  0, or a negative errno and in @err what is missing: the
 * capability, or the kernel's setting.
 */
int kernel_available(struct strbuf *err);

/* Create the maps of @unit, which must outlive the place.  state is ABI_STATE_OFF. */
int kernel_new(const struct ebpf_unit *unit, struct kernel_place **ret, struct strbuf *err);

/* Detach, unload, release.  Accepts NULL. */
void kernel_free(struct kernel_place *k);

const struct kernel_features *kernel_features(const struct kernel_place *k);

/* The block shared with the programs; stays the place's. */
struct abi_control *kernel_control(struct kernel_place *k);

/* Set entry @index of the probe table. */
int kernel_set_probe(struct kernel_place *k, uint32_t index, const struct abi_probe *probe);

/*
 * Load @prog (which must outlive the place): its handle, from 0 on, or a negative errno.  When the verifier
 * refuses, @err names the clause's line, and with @log set *log (which may be NULL) gets its whole log.
 */
int kernel_load(struct kernel_place *k, const struct ebpf_prog *prog, bool multi, struct strbuf *err,
		struct strbuf *log);

/* One place in a file to be armed. */
struct kernel_site {
	const char *path;	/* that this process can open; the file is held by its inode from then on */
	uint64_t off;		/* of the instruction in the file */
	uint64_t sem_off;	/* of the semaphore in the file, 0: none */
	uint32_t probe;		/* index in the probe table */
	bool ret;		/* fire when the function that starts there returns */
};

/*
 * Fire program @prog at the @n sites, in process @pid or (0) in every process that maps the file, now or
 * later.  @prog must have been loaded with multi as kernel_use_multi(@k, @pid) says.
 */
int kernel_arm_uprobes(struct kernel_place *k, int prog, const struct kernel_site *sites, size_t n, uint32_t pid,
		       struct strbuf *err);

/* How many sites kernel_arm_uprobes has left out so far: of several it arms those that the kernel takes. */
size_t kernel_skipped(const struct kernel_place *k);

bool kernel_use_multi(const struct kernel_place *k, uint32_t pid);

/* Fire @prog for probe @probe every @period_ns of each CPU's time. */
int kernel_arm_profile(struct kernel_place *k, int prog, uint64_t period_ns, uint32_t probe, struct strbuf *err);

/* Fire @prog at the raw tracepoint @name. */
int kernel_arm_tracepoint(struct kernel_place *k, int prog, const char *name, struct strbuf *err);

/* Let entry @key (EBPF_SYSCALL_KEY) of the table of system calls be @call. */
int kernel_set_syscall(struct kernel_place *k, uint32_t key, const struct ebpf_syscall *call);

/* Take all sites and profiles down.  When it returns no program that they fired is still running. */
void kernel_disarm(struct kernel_place *k);

/* Run an EBPF_CTX_RUN program now, on this CPU, with the probe's index and arguments. */
int kernel_run(struct kernel_place *k, int prog, uint32_t probe, const uint64_t args[10]);

/* A descriptor that becomes readable when there are many records. */
int kernel_out_fd(const struct kernel_place *k);

/*
 * Take all records out of the stream, in the order they were written; @record must copy what it keeps.
 * Returns how many, or a negative errno, also what @record returned if that was negative.
 */
int kernel_drain(struct kernel_place *k, int (*record)(void *ctx, const void *rec, size_t size), void *ctx);

/*
 * Read map number @map: @each gets every key with its value; of per-CPU maps the values of all CPUs one
 * after the other, each value_size rounded up to 8 bytes, @ncpus of them (1 for other maps).  Elements that
 * come or go meanwhile may be missed, none is shown twice unless its neighbours changed.
 */
int kernel_map_each(struct kernel_place *k, uint32_t map,
		    void (*each)(void *ctx, const void *key, const void *value, unsigned int ncpus), void *ctx);

/* Remove an element.  -ENOENT when it is not there; an array's element is zeroed instead. */
int kernel_map_delete(struct kernel_place *k, uint32_t map, const void *key);

#endif
