/* Segments that are refused, and lanes. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "segment.h"

static int open_it(struct segment *seg, struct shm *shm)
{
	const char *why;

	return shm_open_segment(seg->image, seg->image_size, seg->data, seg->data_size, shm, &why);
}

/* What a tracer of another build has made is not looked into. */
static void another_version(void **state)
{
	struct segment seg;
	struct shm shm;
	const char *why = NULL;

	(void)state;
	segment_make(&seg);
	segment_header(&seg)->version = ABI_VERSION + 1;
	assert_int_equal(shm_open_segment(seg.image, seg.image_size, seg.data, seg.data_size, &shm, &why), -EINVAL);
	assert_string_equal(why, "the segment is of another version of dtap");
	segment_free(&seg);
}

/* Any byte of the tables changed: refused, or what is accepted lies inside. */
static void changed_image(void **state)
{
	struct segment seg;
	struct shm shm;
	size_t tables = sizeof(struct abi_image) + SEG_MAPS * sizeof(struct abi_map);
	unsigned int refused = 0, accepted = 0;

	(void)state;
	segment_make(&seg);
	for (size_t at = 0; at < tables; at++) {
		static const uint8_t changes[] = { 0x01, 0x08, 0x40, 0x80, 0xff };

		for (size_t c = 0; c < sizeof(changes); c++) {
			seg.image[at] ^= changes[c];
			if (open_it(&seg, &shm)) {
				refused++;
			} else {
				accepted++;
				for (uint32_t k = 0; k < shm.nrows; k++) {
					const struct vm_map *row = &shm.rows[k];
					const uint8_t *base = row->base;

					if (!base)
						continue;
					assert_true((base >= seg.data && base + row->size <= seg.data + seg.data_size) ||
						    (base >= seg.image && base + row->size <= seg.image + seg.image_size));
				}
				shm_fini(&shm);
			}
			seg.image[at] ^= changes[c];
		}
	}
	assert_true(refused > 100 && accepted > 0);
	segment_free(&seg);
}

/* The number of a lane that a process has taken, and died with. */
static int lane_of_dead(const struct shm *shm)
{
	struct shm_run run;
	int status;
	pid_t child = fork();

	if (!child) {
		shm_run_init(&run, shm, -1, (uint32_t)getpid(), 6);
		_exit((int)run.number);
	}
	waitpid(child, &status, 0);
	return WEXITSTATUS(status);
}

static void lanes(void **state)
{
	uint32_t me = (uint32_t)getpid();
	struct segment seg;
	struct shm_run a, b, c, d, e;
	struct shm shm;

	(void)state;
	segment_make(&seg);
	assert_int_equal(open_it(&seg, &shm), 0);
	assert_int_equal(shm_run_init(&a, &shm, 0, me, 5), 0);
	assert_int_equal(shm_run_init(&b, &shm, -1, me, 5), 0);
	assert_int_equal(b.number, 1);
	assert_int_equal(lane_of_dead(&shm), 2);
	/* Those of the dead come before those that nobody has used. */
	assert_int_equal(shm_run_init(&c, &shm, -1, me, 5), 0);
	assert_int_equal(c.number, 2);
	assert_int_equal(lane_of_dead(&shm), 3);
	/* Who knows other numbers of processes cannot tell who is dead. */
	shm.other_pids = true;
	assert_int_equal(shm_run_init(&d, &shm, -1, me, 5), -EAGAIN);
	shm.other_pids = false;
	assert_int_equal(shm_run_init(&d, &shm, -1, me, 5), 0);
	assert_int_equal(d.number, 3);
	assert_int_equal(shm_run_init(&e, &shm, -1, me, 5), -EAGAIN);
	shm_run_fini(&c);
	assert_int_equal(shm_run_init(&e, &shm, -1, me, 5), 0);
	assert_int_equal(e.number, 2);
	shm_run_fini(&a);
	shm_run_fini(&b);
	shm_run_fini(&d);
	shm_run_fini(&e);
	shm_fini(&shm);
	segment_free(&seg);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(another_version),
		cmocka_unit_test(changed_image),
		cmocka_unit_test(lanes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
