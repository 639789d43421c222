/* SPDX-License-Identifier: MIT */
/*
 * The contents of objects: items of dictionaries, attributes of instances, classes and modules.  No code of the program
 * is run: no __getattr__, __eq__ or __hash__; what only they can compute is ABI_FAULT_VALUE_COMPUTED.
 *
 * Everything here is read by vm/memory.h.  Functions return 0 or enum abi_fault.  With the GIL, or in turn (engine.c).
 */
#ifndef AGENT_ATTRIBUTE_H
#define AGENT_ATTRIBUTE_H

#include "agent/object.h"

enum { TYPE_DICT = 1 << 29, TYPE_EXCEPTION = 1 << 30 };

/* A key to look up: a text or a number. */
struct attribute_key {
	const char *text;		/* at most OBJECT_NAME bytes of UTF-8; NULL: it is a number */
	uint32_t length;
	int64_t number;
	uint64_t hash;
	bool no_hash;			/* hash unknown: all keys are compared */
};

void attribute_text_key(struct attribute_key *ret, const char *text, uint32_t length);
void attribute_number_key(struct attribute_key *ret, int64_t number);

/* A dictionary's table, or the shared keys of a class with the values of one instance. */
struct attribute_table {
	struct shm_run *run;
	uint64_t indices, entries, nentries;
	uint32_t entry_size, index_width, log2_size;
	uint64_t values;		/* address of the first; 0: they are in the entries */
	uint64_t order;			/* insertion order of the values: bytes with indices; 0: that of the entries */
	int order_step;
	uint32_t norder;
};

int attribute_dict(const struct object *dict, struct attribute_table *ret);

/* Entry @n, below attribute_count(), in insertion order.  ABI_FAULT_VALUE_NONE: the entry was removed. */
uint64_t attribute_count(const struct attribute_table *t);
int attribute_entry(const struct attribute_table *t, uint64_t n, uint64_t *key, uint64_t *value);
int attribute_lookup(const struct attribute_table *t, const struct attribute_key *k, uint64_t *value);

/* The own attributes of the instance @o, as a table.  ABI_FAULT_VALUE_NONE: it has none. */
int attribute_instance(const struct object *o, struct attribute_table *ret);

/* The value in the slot of @o that the descriptor @d, of object_at->member_type, describes. */
int attribute_slot(const struct object *o, const struct object *d, uint64_t *value);

/* Look @k up in the classes of @type's method resolution order. */
int attribute_in_classes(struct shm_run *r, uint64_t type, const struct attribute_key *k, uint64_t *value);

/*
 * The value of @o.NAME: an instance attribute, a slot, a value of the class, a function of the class (not bound to a
 * method), or, if @o is a module or class, its attribute.
 */
int attribute_find(const struct object *o, const struct attribute_key *k, uint64_t *value);

/*
 * The item of a list or tuple with the number @k (counted from the end if negative), or a dictionary's value for the
 * key @k.
 */
int attribute_item(const struct object *o, const struct attribute_key *k, uint64_t *value);

/* The address and the number of a list's items. */
int attribute_list(const struct object *o, uint64_t *items, uint64_t *n);

/* Is @type equal to @base or derived from it?  Only the first base of each class (tp_base) is followed. */
bool attribute_is_a(struct shm_run *r, uint64_t type, uint64_t base);

/* The size of @type's instances without their items; 0: it cannot be read. */
uint64_t attribute_basic_size(struct shm_run *r, uint64_t type);

/* Measure the rest of the layouts; part of object_measure(). */
void attribute_measure(void);

#endif
