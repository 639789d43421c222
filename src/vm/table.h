/*
 * Hash tables in a session's shared memory (abi/segment.h): tables of one lane, and tables shared by all processes.
 *
 * Functions return the address of a value.  It stays readable while the segment is mapped; once the key was deleted,
 * another key's value may be there.  -E2BIG: no room.  An invalid number read from the table ends the search.
 */
#ifndef DTAP_VM_TABLE_H
#define DTAP_VM_TABLE_H

#include "vm/shm.h"

/*
 * The first live element whose number is not below @from, in either kind of table; @base is the lane, or the data.
 * False: there is none.
 */
bool table_next(const struct shm_map *m, uint8_t *base, uint64_t from, struct vm_elem *ret);

/* --- of a lane: the caller is its only writer --- */

/* The value of @key, or NULL. */
void *lane_table_find(const struct shm_map *m, uint8_t *lane, const void *key);

/* @flags: BPF_ANY or BPF_NOEXIST.  @value: NULL for zeros.  0, -EEXIST, -E2BIG. */
int lane_table_put(const struct shm_map *m, uint8_t *lane, const void *key, const void *value, uint64_t flags);

/* The value of @key, which is created with zeros if there is none.  NULL: no room. */
void *lane_table_get(const struct shm_map *m, uint8_t *lane, const void *key);

int lane_table_del(const struct shm_map *m, uint8_t *lane, const void *key);	/* 0, -ENOENT */

/*
 * Of element @e, which is in the index: set its value as lane_table_put() does; mark it as dead, false if it is already;
 * remove it if it is dead.
 */
int lane_table_set(const struct shm_map *m, struct abi_elem *e, const void *value, uint64_t flags);
bool lane_table_mark_dead(struct abi_elem *e);
void lane_table_expect_dead(const struct shm_map *m, uint8_t *lane);	/* look for such elements when it is full */
void lane_table_bury(const struct shm_map *m, uint8_t *lane, struct abi_elem *e);

/* Remove all elements whose values are all zero.  False: there were none. */
bool lane_table_free_zeros(const struct shm_map *m, uint8_t *lane);

/* For any other process: zero the element's value and mark it dead; the owner frees it. */
int lane_table_kill(const struct shm_map *m, uint8_t *lane, const void *key);

/* The same for all of its elements. */
void lane_table_kill_all(const struct shm_map *m, uint8_t *lane);

/* Rebuild the index from the elements, after an owner was killed while changing it. */
void lane_table_repair(const struct shm_map *m, uint8_t *lane);

/* --- shared: @base is the data, @tid the calling thread --- */

/*
 * Like those of a lane.  A put or del that finds the bucket's lock held by a dead thread takes it over; a find takes the lock
 * only where others change the chain faster than it is followed.
 */
void *shared_table_find(const struct shm_map *m, uint8_t *base, const void *key, uint32_t tid);
int shared_table_put(const struct shm_map *m, uint8_t *base, const void *key, const void *value, uint64_t flags,
		     uint32_t tid);
int shared_table_del(const struct shm_map *m, uint8_t *base, const void *key, uint32_t tid);

#endif
