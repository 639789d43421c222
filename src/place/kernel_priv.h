/*
 * Declarations shared by kernel*.c: the place in the kernel.  No other file includes this.
 *
 *	kernel.c	the place: creation and release, the control block, records
 *	kernel_ask.c	features of this kernel
 *	kernel_maps.c	maps
 *	kernel_load.c	programs, and the verifier's messages about them
 *	kernel_arm.c	what fires programs
 *	kernel_cost.c	what that costs
 */
#ifndef DTAP_PLACE_KERNEL_PRIV_H
#define DTAP_PLACE_KERNEL_PRIV_H

#include <pthread.h>
#include <stdatomic.h>

#include "place/kernel.h"

/* enum bpf_attach_type: in linux/bpf.h since 6.6; Debian 12's headers are older. */
enum { ATTACH_UPROBE_MULTI = 48 };

#define KERNEL_LICENSE "Dual MIT/GPL"

struct ring_buffer;

struct kernel_prog {
	const struct ebpf_prog *prog;
	int fd;
	bool multi;
};

/* Features of this kernel, found by trying them (kernel_ask.c). */
struct kernel_features {
	bool uprobe_multi;	/* one link for many sites (6.6) */
	bool multi_pid;		/* the pid filter of such a link means the process, not its first thread (6.10) */
	bool sleepable;		/* uprobe programs that may fault pages in (6.0) */
	atomic_bool globals;	/* global functions as in func_info.h (6.17); true: not rejected yet */
};

struct kernel_place {
	struct place place;
	const struct ebpf_unit *unit;
	struct kernel_features features;
	int *map_fds;			/* -1: not created */
	unsigned int ncpus;		/* possible ones */
	struct abi_control *control;
	struct abi_probe *named;	/* those of the last entries of the probe table that were asked for; or NULL */
	void *memory;			/* of the map that kernel_map_write() has mapped */
	size_t memory_size;
	struct ring_buffer *ring;
	int (*record)(void *ctx, const struct record *rec);		/* during kernel_drain */
	void *record_ctx;
	pthread_mutex_t lock;		/* of progs and links, while several threads load and arm */
	struct kernel_prog *progs;
	size_t nprogs, progs_cap;
	int *links;			/* links and perf events, closed to detach */
	size_t nlinks, links_cap;
	struct kernel_armed *armed;	/* what was armed, to arm it again after a rest */
	size_t narmed, armed_cap;
	bool rests;			/* nothing is armed for the time being; the session's thread alone changes it */
	atomic_size_t skipped;		/* sites that the kernel refused */
	atomic_size_t changed;		/* sites in files that were rewritten */
	atomic_bool tracepoints;	/* some are armed */
};

/* One call of an operation that arms something. */
struct kernel_armed {
	int prog;
	enum kernel_armed_as { KERNEL_SITES, KERNEL_EVENT, KERNEL_TRACEPOINT } as;
	struct place_site *sites;	/* KERNEL_SITES: @n, for process @pid or 0 */
	size_t n;
	uint32_t pid;
	struct ebpf_event event;	/* KERNEL_EVENT, with the probe's index */
	uint32_t probe;
	char *name;			/* KERNEL_TRACEPOINT */
};

static inline struct kernel_place *kernel_of(struct place *place)
{
	return (struct kernel_place *)place;
}

/* --- kernel_ask.c --- */

/* Read the first line of a file in /sys.  0 or a negative errno. */
int kernel_setting(const char *path, char *buf, size_t size);

/* Does the kernel have the instruction that loops need (may_goto)? */
bool kernel_knows_may_goto(void);

void kernel_find_features(struct kernel_features *f);

/* The arguments of bpf(2), BPF_LINK_CREATE, for a link to several sites of a file: union bpf_attr in linux/bpf.h. */
struct uprobe_multi_attr {
	uint32_t prog_fd, target_fd, attach_type, flags;
	uint64_t path, offsets, ref_ctr_offsets, cookies;
	uint32_t cnt, multi_flags, pid, pad;
};
_Static_assert(sizeof(struct uprobe_multi_attr) == 64, "link_create.uprobe_multi of union bpf_attr");

/* --- kernel_maps.c --- */

/* Create map @number of the unit, if a program uses it. */
int kernel_create_map(struct kernel_place *k, uint32_t number, struct strbuf *err);

/* struct place_ops. */
int kernel_map_each(struct place *place, uint32_t map,
		    void (*each)(void *ctx, const void *key, const void *value, unsigned int ncpus), void *ctx);
int kernel_map_write(struct place *place, uint32_t map, size_t off, const void *bytes, size_t n);
int kernel_map_set(struct place *place, uint32_t map, const void *key, const void *value);
int kernel_map_delete(struct place *place, uint32_t map, const void *key);

/* Forget what programs keep for threads. */
void kernel_forget_threads(struct kernel_place *k);

/* --- kernel_load.c --- */

/* struct place_ops. */
int kernel_load(struct place *place, const struct ebpf_prog *prog, bool multi, struct strbuf *err, struct strbuf *log);

/* The program of a handle that kernel_load() returned. */
struct kernel_prog kernel_prog_of(struct kernel_place *k, int handle);

/* --- kernel_arm.c: struct place_ops --- */

bool kernel_use_multi(const struct place *place, uint32_t pid);
int kernel_arm_sites(struct place *place, int prog, const struct place_site *sites, size_t n, uint32_t pid,
		     struct strbuf *err);
size_t kernel_skipped(const struct place *place, size_t *changed);
int kernel_arm_event(struct place *place, int prog, const struct ebpf_event *event, uint32_t probe, struct strbuf *err);
int kernel_arm_tracepoint(struct place *place, int prog, const char *name, struct strbuf *err);
void kernel_disarm(struct place *place);
int kernel_rest(struct place *place, bool rest, struct strbuf *err);

/*
 * Open a perf event, disabled, at offset @off of @f, for thread @tid or (0) for all processes.  Its descriptor or a negative
 * errno.
 */
int kernel_open_site(const struct file *f, uint64_t off, uint64_t sem_off, bool ret, uint32_t tid);

/* Forget what was armed. */
void kernel_forget_armed(struct kernel_place *k);

/* --- kernel_cost.c: struct place_ops --- */

void kernel_costs(struct place *place, void (*each)(void *ctx, const struct place_cost *cost), void *ctx);
uint32_t kernel_hook_ns(const struct place *place, enum place_hook hook);

#endif
