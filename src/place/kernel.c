#include "place/kernel_priv.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "base/strbuf.h"
#include "vm/record.h"

static int ring_record(void *ctx, void *data, size_t size)
{
	struct kernel_place *k = ctx;

	return k->record(k->record_ctx, &(struct record){ data, size });
}

static void free_place(struct place *place)
{
	struct kernel_place *k = kernel_of(place);
	size_t i;

	kernel_disarm(place);
	for (i = 0; i < k->nprogs; i++)
		close(k->progs[i].fd);
	ring_buffer__free(k->ring);
	if (k->control)
		munmap(k->control, sizeof(*k->control));
	if (k->memory)
		munmap(k->memory, k->memory_size);
	if (k->map_fds)
		for (i = 0; i < k->unit->nmaps; i++)
			if (k->map_fds[i] >= 0)
				close(k->map_fds[i]);
	free(k->map_fds);
	free(k->named);
	free(k->progs);
	free(k->links);
	kernel_forget_armed(k);
	pthread_mutex_destroy(&k->lock);
	free(k);
}

static void set_state(struct place *place, enum abi_state state)
{
	__atomic_store_n(&kernel_of(place)->control->state, state, __ATOMIC_SEQ_CST);
}

static void set_walltime(struct place *place, uint64_t off_ns)
{
	kernel_of(place)->control->walltime_off_ns = off_ns;
}

static void set_sched_clock(struct place *place, uint64_t off_ns)
{
	kernel_of(place)->control->sched_off_ns = off_ns;
}

static void told(struct place *place, struct place_told *ret)
{
	const struct abi_control *c = kernel_of(place)->control;

	*ret = (struct place_told){ .over = __atomic_load_n(&c->state, __ATOMIC_RELAXED) == ABI_STATE_DRAINING,
				    .errors = __atomic_load_n(&c->errors, __ATOMIC_RELAXED) };
	for (int k = 0; k < ABI_DROP_MAX; k++)
		ret->drops[k] = __atomic_load_n(&c->drops[k], __ATOMIC_RELAXED);
}

static int set_probe(struct place *place, uint32_t index, const struct abi_probe *probe)
{
	struct kernel_place *k = kernel_of(place);
	int fd = k->map_fds[EBPF_MAP_PROBES];

	if (fd < 0)
		return 0;
	return bpf_map_update_elem(fd, &index, probe, BPF_ANY) ? -errno : 0;
}

/* Entries are never changed once they have an index. */
static const struct abi_probe *named(const struct place *place, uint32_t probe)
{
	struct kernel_place *k = kernel_of((struct place *)(uintptr_t)place);
	uint32_t first = k->unit->maps[EBPF_MAP_PROBES].max_entries - k->unit->nnamed;
	struct abi_probe *p;

	if (!k->named)
		k->named = calloc(EBPF_NAMED_MAX, sizeof(*k->named));
	if (!k->named || probe < first || probe - first >= EBPF_NAMED_MAX)
		return NULL;
	p = &k->named[probe - first];
	if (!p->pattern && bpf_map_lookup_elem(k->map_fds[EBPF_MAP_PROBES], &probe, p))
		return NULL;
	return p->pattern ? p : NULL;
}

static int set_syscall(struct place *place, uint32_t key, const struct ebpf_syscall *call)
{
	struct kernel_place *k = kernel_of(place);

	return bpf_map_update_elem(k->map_fds[EBPF_MAP_SYSCALLS], &key, call, BPF_ANY) ? -errno : 0;
}

static int run(struct place *place, int prog, uint32_t probe, const uint64_t args[10])
{
	struct kernel_place *k = kernel_of(place);
	uint64_t ctx[11];
	LIBBPF_OPTS(bpf_test_run_opts, opts, .ctx_in = ctx, .ctx_size_in = sizeof(ctx));

	ctx[0] = probe;
	memcpy(ctx + 1, args, 10 * sizeof(*args));
	return bpf_prog_test_run_opts(kernel_prog_of(k, prog).fd, &opts) ? -errno : 0;
}

static int out_fd(const struct place *place)
{
	const struct kernel_place *k = (const struct kernel_place *)place;

	return k->ring ? ring_buffer__epoll_fd(k->ring) : -1;
}

static int drain(struct place *place, int (*record)(void *ctx, const struct record *rec), void *ctx)
{
	struct kernel_place *k = kernel_of(place);

	if (!k->ring)
		return 0;
	k->record = record;
	k->record_ctx = ctx;
	return ring_buffer__consume(k->ring);
}

/*
 * Before 5.11 BPF memory is charged to this limit, since then to the memory cgroup.  Raising it may fail in a container
 * that otherwise allows BPF; then the present limit must be enough.
 */
static void raise_memlock(void)
{
	struct rlimit lim = { RLIM_INFINITY, RLIM_INFINITY };

	setrlimit(RLIMIT_MEMLOCK, &lim);
}

static const struct place_ops ops = {
	.free = free_place,
	.set_state = set_state,
	.set_walltime = set_walltime,
	.set_sched_clock = set_sched_clock,
	.told = told,
	.set_probe = set_probe,
	.named = named,
	.load = kernel_load,
	.arm_sites = kernel_arm_sites,
	.use_multi = kernel_use_multi,
	.skipped = kernel_skipped,
	.arm_event = kernel_arm_event,
	.arm_tracepoint = kernel_arm_tracepoint,
	.set_syscall = set_syscall,
	.rest = kernel_rest,
	.costs = kernel_costs,
	.hook_ns = kernel_hook_ns,
	.disarm = kernel_disarm,
	.run = run,
	.out_fd = out_fd,
	.drain = drain,
	.map_each = kernel_map_each,
	.map_write = kernel_map_write,
	.map_set = kernel_map_set,
	.map_delete = kernel_map_delete,
};

int kernel_new(const struct ebpf_unit *unit, struct place **ret, struct strbuf *err)
{
	struct kernel_place *k = calloc(1, sizeof(*k));
	int ncpus, e = -ENOMEM;
	uint32_t i;

	if (!k)
		goto no_memory;
	k->place.ops = &ops;
	k->place.parallel = true;
	pthread_mutex_init(&k->lock, NULL);
	k->unit = unit;
	raise_memlock();
	kernel_find_features(&k->features);
	k->place.sleepable = k->features.sleepable;
	k->place.turns_called = unit->maps[EBPF_MAP_CALLS].type != BPF_MAP_TYPE_UNSPEC && !kernel_knows_may_goto();
	ncpus = libbpf_num_possible_cpus();
	if (ncpus < 0) {
		strbuf_puts(err, "cannot read the number of CPUs: is /sys mounted?");
		e = ncpus;
		goto fail;
	}
	k->ncpus = (unsigned int)ncpus;
	k->map_fds = malloc(unit->nmaps * sizeof(*k->map_fds));
	if (!k->map_fds)
		goto no_memory;
	for (i = 0; i < unit->nmaps; i++)
		k->map_fds[i] = -1;
	for (i = 0; i < unit->nmaps; i++) {
		e = kernel_create_map(k, i, err);
		if (e)
			goto fail;
	}
	k->control = mmap(NULL, sizeof(*k->control), PROT_READ | PROT_WRITE, MAP_SHARED,
			  k->map_fds[EBPF_MAP_CONTROL], 0);
	if (k->control == MAP_FAILED) {
		e = -errno;
		k->control = NULL;
		strbuf_printf(err, "cannot map the control block: %s", strerror(-e));
		goto fail;
	}
	if (k->map_fds[EBPF_MAP_OUT] >= 0) {
		k->ring = ring_buffer__new(k->map_fds[EBPF_MAP_OUT], ring_record, k, NULL);
		if (!k->ring) {
			e = -errno;
			strbuf_printf(err, "cannot map the output buffer: %s", strerror(-e));
			goto fail;
		}
	}
	*ret = &k->place;
	return 0;
no_memory:
	strbuf_puts(err, "out of memory");
fail:
	if (k)
		free_place(&k->place);
	return e;
}
