#include "place/checked.h"

#include <stdlib.h>

#include "abi/python.h"
#include "ir/layout.h"
#include "vm/stack.h"

/* The layout of a map's keys. */
struct key {
	const struct ir_slot *parts;	/* NULL: bytes */
	uint32_t n, hidden, size;
};

struct checked {
	const struct ebpf_unit *unit;
	struct key *keys;		/* by map */
};

static void set_keys(struct checked *c, uint32_t first, unsigned int n, const struct ir_slot *parts, uint32_t nparts,
		     uint32_t hidden)
{
	for (uint32_t k = first; k < first + n; k++)
		c->keys[k] = (struct key){ parts, nparts, hidden, c->unit->maps[k].key_size };
}

struct checked *checked_new(const struct ebpf_unit *unit)
{
	struct checked *c = calloc(1, sizeof(*c));
	const struct ir_prog *prog = unit->prog;
	uint32_t first;

	if (!c)
		return NULL;
	c->unit = unit;
	c->keys = calloc(unit->nmaps, sizeof(*c->keys));
	if (!c->keys) {
		free(c);
		return NULL;
	}
	for (uint32_t k = 0; k < prog->naggs; k++) {
		unsigned int n = ebpf_agg_maps(unit, prog->aggs[k], &first);

		set_keys(c, first, n, prog->aggs[k]->keys, prog->aggs[k]->nkeys, 0);
	}
	for (uint32_t k = 0; k < prog->nmaps; k++) {
		const struct ir_map *m = prog->maps[k];
		unsigned int n = ebpf_map_maps(unit, m, &first);

		set_keys(c, first, n, m->keys, m->nkeys, m->cls == IR_THREAD);
	}
	return c;
}

void checked_free(struct checked *c)
{
	if (!c)
		return;
	free(c->keys);
	free(c);
}

size_t checked_record_max(const struct checked *c)
{
	const struct ir_prog *prog = c->unit->prog;
	size_t most = STACK_CODE;

	for (uint32_t k = 0; k < prog->nrecs; k++) {
		size_t size = ir_rec_max(prog->recs[k], ir_str_room(prog));

		if (size > most)
			most = size;
	}
	return most;
}

bool checked_key(const struct checked *c, uint32_t map, const void *key)
{
	const struct key *k = &c->keys[map];
	struct ir_value parts[IR_MAX_KEYS];

	return !k->parts || !ir_key_decode(k->parts, k->n, k->hidden, key, k->size, parts);
}

/* --- records ------------------------------------------------------------------------------------------ */

static size_t slots_in(const struct record *r)
{
	return (r->hdr->size - sizeof(*r->hdr)) / 8;
}

static bool good_fault(const struct record *r)
{
	return slots_in(r) >= ABI_ERROR_SLOTS && record_slots(r)[3] < ABI_FAULT_MAX;
}

static bool good_stack(const struct record *r)
{
	const uint64_t *slots = record_slots(r);
	const struct abi_pyframe *py;
	size_t n = slots_in(r), naddrs;

	if (n < 2 || n - 2 > STACK_WORDS_MAX)
		return false;
	n -= 2;
	naddrs = slots[1] & ABI_STACK_PYTHON ? ABI_STACK_ADDRS(slots[1]) : n;
	if (naddrs > n || (n - naddrs) % 2)
		return false;
	py = (const struct abi_pyframe *)(const void *)(slots + 2 + naddrs);
	for (size_t k = 0; k < (n - naddrs) / 2; k++) {
		if (py[k].flags & ~(abi_u32)(ABI_PYFRAME_FIRST | ABI_PYFRAME_CALL) ||
		    (py[k].flags & ABI_PYFRAME_CALL && py[k].instr > naddrs))
			return false;
	}
	return true;
}

/* Can @have bytes, at most @room, be the start of a text with @length characters of @kind bytes each? */
static bool good_text(uint32_t length, uint32_t kind, uint32_t have, size_t room)
{
	uint32_t unit = kind ? kind : 1;

	return (kind <= 2 || kind == 4) && have <= room && have / unit <= length;
}

static bool good_code(const struct record *r)
{
	const struct abi_code *c = (const struct abi_code *)(const void *)r->hdr;

	return r->size >= offsetof(struct abi_code, table_bytes) &&
	       good_text(c->file.length, c->file.kind, c->file.bytes, ABI_CODE_FILE) &&
	       good_text(c->name.length, c->name.kind, c->name.bytes, ABI_CODE_NAME) &&
	       c->table.bytes <= r->size - offsetof(struct abi_code, table_bytes);
}

static bool good_fields(const struct ir_rec *rec, const struct record *r)
{
	struct ir_value fields[IR_MAX_FIELDS];
	const uint64_t *words;

	return !ir_rec_decode(rec, r->hdr, r->size, fields) && (!rec->stat || !ir_rec_stat(rec, r->hdr, r->size, &words));
}

bool checked_record(const struct checked *c, const struct record *r)
{
	const struct ir_prog *prog = c->unit->prog;

	switch (r->hdr->rec) {
	case ABI_REC_STACK:
		return good_stack(r);
	case ABI_REC_CODE:
		return good_code(r);
	case ABI_REC_PROCESS:
		return r->size >= sizeof(struct abi_ask);
	}
	if (r->hdr->probe >= c->unit->maps[EBPF_MAP_PROBES].max_entries)
		return false;
	if (r->hdr->rec == ABI_REC_ERROR)
		return good_fault(r);
	return r->hdr->rec < prog->nrecs && good_fields(prog->recs[r->hdr->rec], r);
}
