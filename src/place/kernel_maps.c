/*
 * Maps of programs in the kernel: creating, reading and changing them.
 */
#include "place/kernel_priv.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <bpf/bpf.h>

#include "base/strbuf.h"
#include "place/layout.h"

/*
 * The kernel keeps little per-CPU memory ready for programs: a burst of new keys with long values (quantize() has 1 kB)
 * fails until a kernel worker has allocated more.  Ordinary memory is available, so such values are shared by all CPUs;
 * programs change them with atomic operations anyway.
 */
enum { PERCPU_HASH_VALUE_MAX = 256 };

static enum bpf_map_type type_of(const struct ebpf_map *m)
{
	return m->type == BPF_MAP_TYPE_PERCPU_HASH && m->value_size > PERCPU_HASH_VALUE_MAX ? BPF_MAP_TYPE_HASH : m->type;
}

/*
 * Put the maps into @number that belong there: all at once (Linux 5.14), because the kernel waits after each update until
 * no program can have the map that was there before.
 */
static int fill_outer(struct kernel_place *k, uint32_t number)
{
	const struct ebpf_map *m = &k->unit->maps[number];
	uint32_t *keys = malloc(2 * m->max_entries * sizeof(*keys)), *fds = keys + m->max_entries, n = m->max_entries;
	int e = 0;

	if (!keys)
		return -ENOMEM;
	for (uint32_t i = 0; i < n; i++) {
		keys[i] = i;
		fds[i] = (uint32_t)k->map_fds[m->inner[i]];
	}
	if (bpf_map_update_batch(k->map_fds[number], keys, fds, &n, NULL)) {
		for (uint32_t i = 0; !e && i < m->max_entries; i++)
			e = bpf_map_update_elem(k->map_fds[number], &i, &fds[i], BPF_ANY) ? -errno : 0;
	}
	free(keys);
	return e;
}

/* Of the probe table only as many entries as programs in the kernel use. */
static uint32_t entries_of(const struct ebpf_unit *u, uint32_t number)
{
	uint32_t n = u->maps[number].max_entries;

	return number == EBPF_MAP_PROBES && u->nnamed > EBPF_NAMED_MAX ? n - u->nnamed + EBPF_NAMED_MAX : n;
}

int kernel_create_map(struct kernel_place *k, uint32_t number, struct strbuf *err)
{
	const struct ebpf_map *m = &k->unit->maps[number];
	LIBBPF_OPTS(bpf_map_create_opts, opts, .map_flags = m->map_flags);
	uint32_t zero = 0;
	int fd, e;

	if (m->type == BPF_MAP_TYPE_UNSPEC || number == EBPF_MAP_CALLS)
		return 0;
	if (m->inner)
		opts.inner_map_fd = (uint32_t)k->map_fds[m->inner[0]];
	fd = bpf_map_create(type_of(m), m->name, m->key_size, m->value_size, entries_of(k->unit, number), &opts);
	if (fd < 0) {
		fd = -errno;
		strbuf_printf(err, "cannot create the BPF map %s (%u entries of %u bytes): %s", m->name,
			      entries_of(k->unit, number), m->key_size + m->value_size, strerror(-fd));
		return fd;
	}
	k->map_fds[number] = fd;
	if (m->init) {
		if (bpf_map_update_elem(fd, &zero, m->init, BPF_ANY) ||
		    (number == EBPF_MAP_RODATA && bpf_map_freeze(fd))) {
			e = -errno;
			strbuf_printf(err, "cannot fill the BPF map %s: %s", m->name, strerror(-e));
			return e;
		}
	}
	e = m->inner ? fill_outer(k, number) : 0;
	if (e)
		strbuf_printf(err, "cannot fill the BPF map %s: %s", m->name, strerror(-e));
	return e;
}

static bool is_percpu(const struct ebpf_map *m)
{
	enum bpf_map_type type = type_of(m);

	return type == BPF_MAP_TYPE_PERCPU_HASH || type == BPF_MAP_TYPE_PERCPU_ARRAY;
}

int kernel_map_each(struct place *place, uint32_t map,
		    void (*each)(void *ctx, const void *key, const void *value, unsigned int ncpus), void *ctx)
{
	struct kernel_place *k = kernel_of(place);
	const struct ebpf_map *m = &k->unit->maps[map];
	unsigned int ncpus = is_percpu(m) ? k->ncpus : 1;
	size_t value_size = (size_t)((m->value_size + 7) & ~7u) * ncpus;
	uint32_t batch = 0, next = 0, count, want = 256, i;
	char *keys = NULL, *values = NULL, *p;
	bool first = true, last = false;
	int fd = k->map_fds[map], e = 0;

	if (fd < 0)
		return 0;
	while (!last) {
		/* -ENOSPC: one bucket of a hash has more elements than fit in the buffer.  Enlarge it. */
		p = realloc(keys, (size_t)want * m->key_size);
		if (p) {
			keys = p;
			p = realloc(values, want * value_size);
		}
		if (!p) {
			e = -ENOMEM;
			break;
		}
		values = p;
		count = want;
		if (bpf_map_lookup_batch(fd, first ? NULL : &batch, &next, keys, values, &count, NULL)) {
			e = -errno;
			if (e == -ENOSPC && want < 1 << 20) {
				want *= 2;
				e = 0;
				continue;
			}
			if (e != -ENOENT)	/* -ENOENT: this was the last batch */
				break;
			e = 0;
			last = true;
		}
		for (i = 0; i < count; i++)
			each(ctx, keys + (size_t)i * m->key_size, values + i * value_size, ncpus);
		batch = next;
		first = false;
	}
	free(keys);
	free(values);
	return e;
}

int kernel_map_write(struct place *place, uint32_t map, size_t off, const void *bytes, size_t n)
{
	struct kernel_place *k = kernel_of(place);
	size_t page = (size_t)sysconf(_SC_PAGESIZE), size = (k->unit->maps[map].value_size + page - 1) & ~(page - 1);
	void *p;

	if (!k->memory) {
		p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, k->map_fds[map], 0);
		if (p == MAP_FAILED)
			return -errno;
		k->memory = p;
		k->memory_size = size;
	}
	memcpy((char *)k->memory + off, bytes, n);
	return 0;
}

int kernel_map_set(struct place *place, uint32_t map, const void *key, const void *value)
{
	return bpf_map_update_elem(kernel_of(place)->map_fds[map], key, value, BPF_ANY) ? -errno : 0;
}

int kernel_map_delete(struct place *place, uint32_t map, const void *key)
{
	struct kernel_place *k = kernel_of(place);
	const struct ebpf_map *m = &k->unit->maps[map];
	size_t size = (size_t)((m->value_size + 7) & ~7u) * (is_percpu(m) ? k->ncpus : 1);
	void *zero;
	int e;

	if (m->type != BPF_MAP_TYPE_ARRAY && m->type != BPF_MAP_TYPE_PERCPU_ARRAY)
		return bpf_map_delete_elem(k->map_fds[map], key) ? -errno : 0;
	zero = calloc(1, size);
	if (!zero)
		return -ENOMEM;
	e = bpf_map_update_elem(k->map_fds[map], key, zero, BPF_ANY) ? -errno : 0;
	free(zero);
	return e;
}

void kernel_forget_threads(struct kernel_place *k)
{
	void *key = NULL, *p;

	for (uint32_t map = 0; map < k->unit->nmaps; map++) {
		if (k->map_fds[map] < 0 || !layout_is_thread_map(k->unit, map))
			continue;
		p = realloc(key, k->unit->maps[map].key_size);
		if (!p)
			break;
		key = p;
		while (!bpf_map_get_next_key(k->map_fds[map], NULL, key) && !bpf_map_delete_elem(k->map_fds[map], key))
			;
	}
	free(key);
}
