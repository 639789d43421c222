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

/*
 * Count under the string that was learned to be in the object that @owner refers to, @ref bytes from its start.  Both
 * are alive.  False: that is not known; run the program, and let it be learned where the string was.  Other objects may
 * have taken the addresses meanwhile, so the string is compared; objects that do not have it inside are not learned.
 * That all is found from @owner lets the processor fetch it at once.
 */
bool add_count_object(const struct shm_run *r, const struct shm_map *m, uint32_t classes, uint64_t owner, long ref);
void add_learn_object(const struct shm_run *r, const struct shm_map *m, uint64_t owner, long ref, uint64_t address);

/* Are these @classes maps from @m on tables for the keys of one string? */
bool shm_good_classes(const struct shm *s, const struct shm_map *m, uint32_t classes);

/* The helper probe_read_user_str: bytes with the NUL, or -EFAULT. */
uint64_t shm_read_string(struct shm_run *r, char *dst, uint64_t size, uint64_t address);

#endif
