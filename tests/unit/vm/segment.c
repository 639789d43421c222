#include "segment.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

enum { PAGE = 4096, TABLE_BYTES = 5 * PAGE, LANE_BYTES = 24 * PAGE, LANES_OFF = 8 * PAGE };

struct abi_image *segment_header(struct segment *s)
{
	return (struct abi_image *)s->image;
}

struct abi_map *segment_map(struct segment *s, unsigned int n)
{
	return (struct abi_map *)(s->image + sizeof(struct abi_image)) + n;
}

void segment_make(struct segment *s)
{
	struct abi_image *h;

	s->image_size = 2 * PAGE;
	s->data_size = LANES_OFF + SEG_LANES * LANE_BYTES;
	s->image = calloc(1, s->image_size);
	s->data = mmap(NULL, s->data_size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (!s->image || s->data == MAP_FAILED)
		abort();
	h = segment_header(s);
	*h = (struct abi_image){ .magic = ABI_SEGMENT_MAGIC, .version = ABI_VERSION, .size = s->image_size,
		.data_size = s->data_size, .nmaps = SEG_MAPS, .nlanes = SEG_LANES, .lanes_off = LANES_OFF,
		.lane_size = LANE_BYTES };
	*segment_map(s, SEG_ARRAY) = (struct abi_map){ ABI_MAP_ARRAY, 4, 16, 4, PAGE, 64, 0, 0 };
	*segment_map(s, SEG_RODATA) = (struct abi_map){ ABI_MAP_IMAGE, 4, 64, 1, PAGE, 64, 0, 0 };
	*segment_map(s, SEG_SHARED) = (struct abi_map){ ABI_MAP_SHARED_HASH, 16, 8, SEG_ENTRIES, 2 * PAGE, TABLE_BYTES, 128, 40 };
	*segment_map(s, SEG_OUT) = (struct abi_map){ ABI_MAP_OUT, 0, 0, SEG_RING, 16 * PAGE, SEG_RING, 0, 0 };
	*segment_map(s, SEG_SCRATCH) = (struct abi_map){ ABI_MAP_SCRATCH, 4, 256, 8, 2 * PAGE, PAGE, 0, 0 };
	*segment_map(s, SEG_LANE_ARRAY) = (struct abi_map){ ABI_MAP_LANE_ARRAY, 4, 8, 1, 3 * PAGE, 64, 0, 0 };
	*segment_map(s, SEG_LANE_HASH) = (struct abi_map){ ABI_MAP_LANE_HASH, 16, 8, SEG_ENTRIES, 4 * PAGE, TABLE_BYTES, 256, 40 };
}

void segment_free(struct segment *s)
{
	free(s->image);
	munmap(s->data, s->data_size);
}

void segment_begin(struct segment *s, struct shm *shm, struct shm_run *run)
{
	const char *why;

	segment_make(s);
	if (shm_open_segment(s->image, s->image_size, s->data, s->data_size, shm, &why) ||
	    shm_run_init(run, shm, -1, (uint32_t)getpid(), 1))
		abort();
}

void segment_end(struct segment *s, struct shm *shm, struct shm_run *run)
{
	shm_run_fini(run);
	shm_fini(shm);
	segment_free(s);
}
