#include "place/layout.h"

#include <errno.h>
#include <stdlib.h>

enum { LANES_MAX = ABI_MAX_LANES, LANES_MIN = 4, LANES_OF_PROCESS = 32, ELEM_ALIGN = 64 };

/* Events can come ten times faster than in the kernel place, and memory that a burst has used is given back. */
enum { RING_FACTOR = 16, RING_MAX = 256 << 20 };

/* Limit of address space, bytes; only used pages take memory. */
static const uint64_t data_max = (uint64_t)16 << 30;

static uint64_t round_up(uint64_t n, uint64_t to)
{
	return (n + to - 1) / to * to;
}

static uint32_t power_of_two(uint64_t at_least)
{
	uint32_t n = 16;

	while (n < at_least && n < (uint32_t)1 << 31)
		n *= 2;
	return n;
}

/* Maps of self-> variables, and of arrays whose keys begin with a thread, are used by that thread's process only. */
bool layout_is_thread_map(const struct ebpf_unit *u, uint32_t number)
{
	uint32_t first;

	if (number == EBPF_MAP_THREADS)
		return true;
	for (uint32_t i = 0; i < u->prog->nmaps; i++) {
		unsigned int n = ebpf_map_maps(u, u->prog->maps[i], &first);

		if (u->prog->maps[i]->cls == IR_THREAD && number >= first && number < first + n)
			return true;
	}
	return false;
}

static enum abi_map_kind kind_of(const struct ebpf_unit *u, uint32_t number)
{
	switch (number) {
	case EBPF_MAP_PROBES:
		return u->nnamed ? ABI_MAP_ARRAY : ABI_MAP_IMAGE;
	case EBPF_MAP_RODATA:
		return ABI_MAP_IMAGE;
	case EBPF_MAP_OUT:
		return ABI_MAP_OUT;
	case EBPF_MAP_SCRATCH:
		return ABI_MAP_SCRATCH;
	case EBPF_MAP_ITERS:
		return ABI_MAP_LANE_BUFFERS;
	case EBPF_MAP_RANGES:
		return ABI_MAP_SHARED_HASH;
	}
	switch (u->maps[number].type) {
	case BPF_MAP_TYPE_ARRAY:
		return ABI_MAP_ARRAY;
	case BPF_MAP_TYPE_HASH:
		return layout_is_thread_map(u, number) ? ABI_MAP_LANE_HASH : ABI_MAP_SHARED_HASH;
	case BPF_MAP_TYPE_PERCPU_HASH:
		return ABI_MAP_LANE_HASH;
	case BPF_MAP_TYPE_PERCPU_ARRAY:
		return ABI_MAP_LANE_ARRAY;
	default:
		return ABI_MAP_KINDS;
	}
}

/*
 * Maps that only the kernel place needs: tail calls exist for the kernel's small stack; a process asks the system for
 * its threads' CPU times, and unwinds its stacks without these maps.
 */
static bool is_kernels(uint32_t number)
{
	return number == EBPF_MAP_CALLS || number == EBPF_MAP_VTIMES || number == EBPF_MAP_KEPT ||
	       number == EBPF_MAP_KEEPS || number == EBPF_MAP_COSTS || number == EBPF_MAP_STACKS || number == EBPF_MAP_NAMES ||
	       number == EBPF_MAP_PYTHONS || number == EBPF_MAP_CODES;
}

static bool is_lane_kind(enum abi_map_kind kind)
{
	return kind == ABI_MAP_OUT || kind == ABI_MAP_SCRATCH || kind == ABI_MAP_LANE_ARRAY ||
	       kind == ABI_MAP_LANE_HASH || kind == ABI_MAP_LANE_BUFFERS;
}

/* A short element gets a cache line of its own, so that its key and its value are in the same line. */
static void size_table(struct abi_map *m)
{
	uint64_t stride = sizeof(struct abi_elem) + m->key_size + round_up(m->value_size, 8), index;

	m->stride = (uint32_t)(stride <= ELEM_ALIGN ? ELEM_ALIGN : stride);
	m->buckets = power_of_two((uint64_t)m->max_entries * 2);
	index = (uint64_t)m->buckets * 4 * (m->kind == ABI_MAP_SHARED_HASH ? 2 : 1);
	m->size = round_up(sizeof(struct abi_table) + index, 64) + (uint64_t)m->max_entries * m->stride;
}

static void size_map(struct abi_map *m, const struct ebpf_map *from)
{
	m->key_size = from->key_size;
	m->value_size = from->value_size;
	m->max_entries = from->max_entries;
	switch (m->kind) {
	case ABI_MAP_OUT:
		if (m->max_entries < RING_MAX)
			m->max_entries = m->max_entries < RING_MAX / RING_FACTOR ? m->max_entries * RING_FACTOR : RING_MAX;
		m->size = m->max_entries;
		break;
	case ABI_MAP_SCRATCH:
	case ABI_MAP_LANE_ARRAY:
		m->max_entries = 1;
		m->size = round_up(m->value_size, 8);
		break;
	case ABI_MAP_LANE_HASH:
	case ABI_MAP_SHARED_HASH:
		size_table(m);
		break;
	default:
		m->size = round_up((uint64_t)m->value_size * m->max_entries, 8);
	}
}

int layout_make(const struct ebpf_unit *unit, unsigned int processes, struct layout *ret)
{
	struct layout l = { .lane_size = sizeof(struct abi_lane) };
	uint64_t shared = round_up(sizeof(struct abi_data), ABI_ALIGN);

	l.maps = calloc(unit->nmaps, sizeof(*l.maps));
	if (!l.maps)
		return -ENOMEM;
	for (uint32_t i = 0; i < unit->nmaps; i++) {
		struct abi_map *m = &l.maps[i];

		if (unit->maps[i].type == BPF_MAP_TYPE_UNSPEC || unit->maps[i].inner || is_kernels(i))
			continue;
		m->kind = kind_of(unit, i);
		size_map(m, &unit->maps[i]);
		if (i == EBPF_MAP_CONTROL || m->kind == ABI_MAP_IMAGE)
			continue;		/* the control block is at the start of the data */
		if (is_lane_kind(m->kind)) {
			l.lane_size = round_up(l.lane_size, m->size >= ABI_ALIGN ? ABI_ALIGN : 64);
			m->off = l.lane_size;
			l.lane_size += m->size;
		} else {
			m->off = shared;
			shared = round_up(shared + m->size, ABI_ALIGN);
		}
	}
	l.lanes_off = shared;
	l.lane_size = round_up(l.lane_size, ABI_ALIGN);
	if (shared + LANES_MIN * l.lane_size > data_max) {
		layout_fini(&l);
		return -E2BIG;
	}
	/*
	 * One lane for the tracer; for each process one or, without a GIL, one for each thread as far as they go; an exec may
	 * take new ones.  Lanes that are never taken cost no memory.
	 */
	l.nlanes = processes && processes < LANES_MAX / LANES_OF_PROCESS ? 2 + LANES_OF_PROCESS * processes : LANES_MAX;
	while (shared + l.nlanes * l.lane_size > data_max)
		l.nlanes--;
	l.data_size = shared + l.nlanes * l.lane_size;
	*ret = l;
	return 0;
}

void layout_fini(struct layout *l)
{
	free(l->maps);
	l->maps = NULL;
}
