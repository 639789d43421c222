/*
 * What a firing in the kernel costs: what programs have summed up for each process (bpf/gen_cost.c), and what the hooks
 * take, measured once on this machine: a function of dtap's own is called with a breakpoint in it, for an empty program, and
 * without; a system call likewise, with the tracepoint of system calls.
 */
#include "place/kernel_priv.h"

#include <errno.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <linux/perf_event.h>

#include "base/file.h"
#include "base/now.h"
#include "bpf/asm.h"

/* Where nothing can be measured: about what a machine of 2020 takes (ns). */
static uint32_t hook_ns[PLACE_HOOKS] = {
	[PLACE_SITE] = 1500, [PLACE_SITE_RETURN] = 2500, [PLACE_TRACEPOINT] = 150, [PLACE_EVENT] = 2000,
};

enum { BATCHES = 5, CALLS = 200 };

/* --- measuring ------------------------------------------------------------------------------------------ */

static __attribute__((noinline, noclone)) void called(void)
{
	__asm__ volatile("" ::: "memory");
}

static void call_system(void)
{
	syscall(SYS_getppid);
}

/* The shortest of some batches: others had an interrupt. */
static uint64_t time_of(void (*fn)(void))
{
	uint64_t least = UINT64_MAX;

	for (int batch = 0; batch < BATCHES; batch++) {
		uint64_t began = now_ns(), took;

		for (int i = 0; i < CALLS; i++)
			fn();
		took = now_ns() - began;
		least = took < least ? took : least;
	}
	return least / CALLS;
}

static void set_hook(enum place_hook hook, uint64_t with, uint64_t without)
{
	if (with > without)
		hook_ns[hook] = (uint32_t)(with - without);
}

/* Where @addr lies in its file. */
struct where {
	uintptr_t addr;
	const char *path;
	uint64_t off;
};

static int find(struct dl_phdr_info *info, size_t size, void *ctx)
{
	struct where *w = ctx;

	(void)size;
	for (size_t i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &info->dlpi_phdr[i];
		uintptr_t first = info->dlpi_addr + p->p_vaddr;

		if (p->p_type != PT_LOAD || w->addr - first >= p->p_filesz)
			continue;
		w->path = *info->dlpi_name ? info->dlpi_name : "/proc/self/exe";
		w->off = w->addr - first + p->p_offset;
		return 1;
	}
	return 0;
}

/* An empty program of @type, or a negative errno. */
static int load_empty(enum bpf_prog_type type)
{
	const struct bpf_insn insns[] = {
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K }, { .code = BPF_JMP | BPF_EXIT },
	};

	return bpf_prog_load(type, "dtap_cost", KERNEL_LICENSE, insns, 2, NULL);
}

static void measure_site(int prog, const struct file *f, uint64_t off, bool ret)
{
	uint64_t without = time_of(called);
	int event = kernel_open_site(f, off, 0, ret, (uint32_t)gettid()), link;

	if (event < 0)
		return;
	link = bpf_link_create(prog, event, BPF_PERF_EVENT, NULL);
	if (link >= 0 && !ioctl(event, PERF_EVENT_IOC_ENABLE, 0))
		set_hook(ret ? PLACE_SITE_RETURN : PLACE_SITE, time_of(called), without);
	if (link >= 0)
		close(link);
	close(event);
}

static void measure_sites(void)
{
	struct where w = { .addr = (uintptr_t)called };
	struct file *f = NULL;
	int prog = load_empty(BPF_PROG_TYPE_KPROBE);

	if (prog < 0)
		return;
	if (dl_iterate_phdr(find, &w) && !file_open_link(w.path, w.path, &f, NULL)) {
		measure_site(prog, f, w.off, false);
		measure_site(prog, f, w.off, true);
	}
	file_close(f);
	close(prog);
}

static void measure_tracepoint(void)
{
	int prog = load_empty(BPF_PROG_TYPE_RAW_TRACEPOINT), fd;
	uint64_t without = time_of(call_system);

	if (prog < 0)
		return;
	fd = bpf_raw_tracepoint_open("sys_enter", prog);
	if (fd >= 0) {
		set_hook(PLACE_TRACEPOINT, time_of(call_system), without);
		close(fd);
	}
	close(prog);
}

static void measure(void)
{
	measure_sites();
	measure_tracepoint();
}

uint32_t kernel_hook_ns(const struct place *place, enum place_hook hook)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	(void)place;
	pthread_once(&once, measure);
	return hook_ns[hook];
}

/* --- reading -------------------------------------------------------------------------------------------- */

struct read_costs {
	struct place *place;
	void (*each)(void *ctx, const struct place_cost *cost);
	void *ctx;
};

/* Programs that have found the element may still add to it: what that is, no one will know. */
static void read_cost(void *ctx, const void *key, const void *value, unsigned int ncpus)
{
	const struct read_costs *r = ctx;
	struct ebpf_cost cost;
	struct place_cost told = { 0 };

	(void)ncpus;
	memcpy(&told.pid, key, sizeof(told.pid));
	memcpy(&cost, value, sizeof(cost));
	if (kernel_map_delete(r->place, EBPF_MAP_COSTS, key))
		return;
	told.events = cost.events;
	told.spent_ns = cost.spent_ns;
	r->each(r->ctx, &told);
}

void kernel_costs(struct place *place, void (*each)(void *ctx, const struct place_cost *cost), void *ctx)
{
	struct read_costs r = { place, each, ctx };

	kernel_map_each(place, EBPF_MAP_COSTS, read_cost, &r);
}
