/*
 * Helpers that stand for several steps of a program (ABI_HELPER_ADD_...): see add.c.
 */
#ifndef DTAP_VM_ADD_H
#define DTAP_VM_ADD_H

#include "vm/shm.h"

/*
 * To word @word of the element that the string at @address has in the lane's tables @map, @map + 1 ..., one for each
 * of its @classes key sizes, add @value.  0; -EFAULT: no string can be read there; -E2BIG: no room for another key.
 */
uint64_t add_by_string(uint64_t map, uint64_t address, uint64_t classes, uint64_t word, uint64_t value,
		       struct vm_thread *t);

/* Where is counted under the strings of objects that @ref bytes from the start of other objects are referred to? */
struct add_objects {
	struct shm_object *objects;
	const struct abi_lane *lane;
	long ref;
	uint16_t map;			/* the first of the maps */
};

/*
 * Where @owner can be: there and in the place behind.  Objects that were made one after the other lie so here, too, and
 * are fetched one after the other.
 */
static inline struct shm_object *add_objects_at(const struct add_objects *a, uint64_t owner)
{
	return &a->objects[((owner >> 7 ^ owner >> 21) & (SHM_OBJECTS / 2 - 1)) * 2];
}

/*
 * Count under the string of the object that @owner refers to.  Both are alive.  False: that it is not known; run the
 * program, and let it be learned where the string was.
 */
static inline bool add_count_object(const struct add_objects *a, uint64_t owner)
{
	const struct shm_object *o = add_objects_at(a, owner);

	if (__builtin_expect(o->owner != owner, 0))
		o++;
	if (__builtin_expect(o->owner != owner || o->map != a->map || o->given_back != a->lane->given_back ||
			     o->object != *(const uint64_t *)(uintptr_t)(owner + (uint64_t)a->ref) ||
			     ((const struct abi_elem *)o->elem)->state != ABI_ELEM_LIVE, 0))
		return false;
	++*(uint64_t *)(o->elem + o->value);
	return true;
}

/*
 * After the program has run: the string at @address is that of the object @owner refers to, one of the keys of the
 * @classes maps.  The object if it was learned, which the caller then keeps alive, else 0; *@forgotten: one that was
 * kept until now and need not be any more, or 0.  It can be the same.
 */
uint64_t add_learn_object(const struct shm_run *r, const struct add_objects *a, uint32_t classes, uint64_t owner,
			  uint64_t address, uint64_t *forgotten);

/* Are these @classes maps from @m on tables for the keys of one string? */
bool shm_good_classes(const struct shm *s, const struct shm_map *m, uint32_t classes);

/* The helper probe_read_user_str: bytes with the NUL, or -EFAULT. */
uint64_t shm_read_string(struct shm_run *r, char *dst, uint64_t size, uint64_t address);

#endif
