/*
 * A small segment in this process's memory, for tests: maps of each kind, no programs.
 */
#ifndef TEST_SEGMENT_H
#define TEST_SEGMENT_H

#include "vm/shm.h"

enum { SEG_ARRAY, SEG_RODATA, SEG_SHARED, SEG_OUT, SEG_SCRATCH, SEG_LANE_ARRAY, SEG_LANE_HASH, SEG_MAPS };
enum { SEG_ENTRIES = 100, SEG_LANES = 4, SEG_RING = 16384 };

struct segment {
	uint8_t *image, *data;		/* data is shared with children */
	uint64_t image_size, data_size;
};

void segment_make(struct segment *s);
void segment_free(struct segment *s);

/* Make @s and run in it, as a process that finds its lane; segment_end() releases all three. */
void segment_begin(struct segment *s, struct shm *shm, struct shm_run *run);
void segment_end(struct segment *s, struct shm *shm, struct shm_run *run);
struct abi_image *segment_header(struct segment *s);
struct abi_map *segment_map(struct segment *s, unsigned int n);

#endif
