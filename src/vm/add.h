/*
 * Helpers that combine several steps of a program (ABI_HELPER_ADD_...): see add.c.
 */
#ifndef DTAP_VM_ADD_H
#define DTAP_VM_ADD_H

#include "vm/shm.h"

/*
 * Add @value to word @word of the element whose key is the string at @address, in the lane's tables @map, @map + 1
 * ..., one for each of @classes key sizes.  0; -EFAULT: no string can be read there; -E2BIG: no room for another key.
 */
uint64_t add_by_string(uint64_t map, uint64_t address, uint64_t classes, uint64_t word, uint64_t value,
		       struct vm_thread *t);

/*
 * An aggregation that counts by the string of an object, which an owner object refers to by a pointer at offset @ref.
 */
struct add_objects {
	struct shm_object *objects;
	struct abi_lane *lane;
	long ref;
	uint16_t map;			/* the aggregation's first map */
	uint64_t *others;		/* shm_run.others if the key follows from a second object, too, at offset @other; else NULL */
	long other;
};

/* The objects that an entry knows its key by: both are kept alive while it is there.  0: none. */
struct add_pair { uint64_t object, other; };

/*
 * The first of the two neighbouring entries that @owner can have.  Objects created one after the other have
 * neighbouring entries, which is good for the processor's caches.
 */
static inline struct shm_object *add_objects_at(const struct add_objects *a, uint64_t owner)
{
	return &a->objects[((owner >> 7 ^ owner >> 21) & (SHM_OBJECTS / 2 - 1)) * 2];
}

/*
 * The words of the element for the string of the object that @owner refers to.  Both objects must be alive.  NULL: the string is not
 * in the cache; the caller runs the program, then calls add_learn_object or add_learn_found.
 */
static inline uint64_t *add_find_object(const struct add_objects *a, uint64_t owner)
{
	const struct shm_object *o = add_objects_at(a, owner);

	if (__builtin_expect(o->owner != owner, 0))
		o++;
	if (__builtin_expect(o->owner != owner || o->map != a->map || o->given_back != a->lane->given_back ||
			     o->object != *(const uint64_t *)(uintptr_t)(owner + (uint64_t)a->ref) ||
			     ((const struct abi_elem *)o->elem)->state != ABI_ELEM_LIVE, 0))
		return NULL;
	if (a->others && __builtin_expect(a->others[o - a->objects] != *(const uint64_t *)(uintptr_t)(owner + (uint64_t)a->other), 0))
		return NULL;
	return (uint64_t *)(void *)(o->elem + o->value);
}

/* Count there.  False: the string is not in the cache. */
static inline bool add_count_object(const struct add_objects *a, uint64_t owner)
{
	uint64_t *words = add_find_object(a, owner);

	if (__builtin_expect(!words, 0))
		return false;
	++*words;
	return true;
}

/*
 * After the program has run: remember that @owner refers to the object with the string at @address, a key of one of
 * the @classes maps.  Returns what was remembered, which the caller keeps alive.  *@forgotten need not be kept alive any more.
 * Both can have the same objects.
 */
struct add_pair add_learn_object(const struct shm_run *r, const struct add_objects *a, uint32_t classes, uint64_t owner,
				 uint64_t address, struct add_pair *forgotten);

/*
 * The same by what the program has found, of which add_forget_found() was called before it ran: the key follows from the
 * process, and from the object, or objects, that @owner refers to.
 */
struct add_pair add_learn_found(const struct shm_run *r, const struct add_objects *a, uint32_t classes, uint64_t owner,
				struct add_pair *forgotten);
void add_forget_found(const struct shm_run *r, const struct add_objects *a, uint32_t classes);

/*
 * Are the @classes maps from @m on hash tables of a lane, whose elements add_learn_found() can remember, or one array of a lane,
 * which has one element?
 */
bool shm_good_tables(const struct shm *s, const struct shm_map *m, uint32_t classes);

/* Are the @classes maps from @m on the tables of one aggregation by string? */
static inline bool shm_good_classes(const struct shm_map *m, uint32_t classes)
{
	return classes - 1 < m->classes;
}

#endif
