/*
 * Hash tables in a session's shared memory (abi/segment.h): those of one lane, and those that all processes share.
 *
 * Functions return a value's address, which stays good for as long as the segment is mapped; whether it still is
 * that key's is not promised once the key was deleted.  -E2BIG: no room.  A number read from the table that cannot
 * be is taken for the end of what was followed.
 */
#ifndef DTAP_VM_TABLE_H
#define DTAP_VM_TABLE_H

#include "vm/shm.h"

/*
 * The first element in use whose number is not below @from, of either kind; @base is the lane, or the data.  False:
 * there is none.
 */
bool table_next(const struct shm_map *m, uint8_t *base, uint64_t from, struct vm_elem *ret);

/* --- of a lane: the caller is its only writer --- */

/* The value of @key, or NULL. */
void *lane_table_find(const struct shm_map *m, uint8_t *lane, const void *key);

/* @flags: BPF_ANY or BPF_NOEXIST.  @value: NULL for zeros.  0, -EEXIST, -E2BIG. */
int lane_table_put(const struct shm_map *m, uint8_t *lane, const void *key, const void *value, uint64_t flags);
int lane_table_del(const struct shm_map *m, uint8_t *lane, const void *key);	/* 0, -ENOENT */

/* From any other process: empty the element and let the owner recycle it. */
int lane_table_kill(const struct shm_map *m, uint8_t *lane, const void *key);

/* Make the index anew from the elements, after an owner was killed while it changed it. */
void lane_table_repair(const struct shm_map *m, uint8_t *lane);

/* --- shared: @base is the data, @tid the calling thread --- */

/* As those of a lane; a put or del that finds the bucket's lock with a thread that has died takes it over. */
void *shared_table_find(const struct shm_map *m, uint8_t *base, const void *key);
int shared_table_put(const struct shm_map *m, uint8_t *base, const void *key, const void *value, uint64_t flags,
		     uint32_t tid);
int shared_table_del(const struct shm_map *m, uint8_t *base, const void *key, uint32_t tid);

/* Elements in use, of either kind; @at is the table's start. */
void table_each(const struct shm_map *m, const uint8_t *at,
		void (*each)(void *ctx, const void *key, const void *value), void *ctx);

#endif
