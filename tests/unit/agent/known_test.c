/*
 * Programs of which it is known what they do: what a segment says of them is believed only if it is possible; the record that is
 * output is the one that the program would output.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "../vm/segment.h"
#include "agent/agent.h"
#include "agent/emit.h"
#include "agent/span.h"

/* --- what a segment says ------------------------------------------------------------------------------ */

enum { THREADS, ARRAY, USED, FIRST, SECOND, NARROW, WIDE, OUT, MAPS };

static struct shm_map maps[MAPS] = {
	[THREADS] = { .kind = ABI_MAP_LANE_HASH, .key_size = 8, .value_size = 24, .max_entries = 10 },
	[ARRAY] = { .kind = ABI_MAP_LANE_ARRAY, .key_size = 4, .value_size = 8, .max_entries = 1, .off = 320 },
	[USED] = { .kind = ABI_MAP_LANE_ARRAY, .key_size = 4, .value_size = 1024, .max_entries = 1, .off = 640 },
	[FIRST] = { .kind = ABI_MAP_LANE_HASH, .key_size = 32, .value_size = 8, .max_entries = 10 },
	[SECOND] = { .kind = ABI_MAP_LANE_HASH, .key_size = 64, .value_size = 8, .max_entries = 10 },
	[NARROW] = { .kind = ABI_MAP_LANE_HASH, .key_size = 16, .value_size = 24, .max_entries = 10 },
	[WIDE] = { .kind = ABI_MAP_LANE_HASH, .key_size = 64, .value_size = 16, .max_entries = 10 },
	[OUT] = { .kind = ABI_MAP_OUT, .max_entries = 4096 },
};
static struct shm shm = { .maps = maps, .nmaps = MAPS };

/* Of ABI_KNOWN_STOP. */
static struct abi_fire stop(uint32_t map, uint32_t classes, enum abi_stop way)
{
	return (struct abi_fire){ .known = ABI_KNOWN_STOP, .lap_map = map, .lap_classes = classes, .lap_threads = THREADS, .lap_last = 16,
				  .lap_frames = way };
}

static struct abi_fire start(uint32_t threads, uint32_t last)
{
	return (struct abi_fire){ .known = ABI_KNOWN_START, .lap_map = 99, .lap_threads = threads, .lap_last = last };
}

static void spans(void **state)
{
	const struct { struct abi_fire fire; enum abi_known what; } cases[] = {
		{ start(THREADS, 0), ABI_KNOWN_START }, { start(THREADS, 16), ABI_KNOWN_START },
		/* No such map, another kind, no thread's number as a key; behind the end, not aligned. */
		{ start(MAPS, 0), ABI_KNOWN_NONE }, { start(UINT32_MAX, 0), ABI_KNOWN_NONE }, { start(ARRAY, 0), ABI_KNOWN_NONE },
		{ start(NARROW, 0), ABI_KNOWN_NONE }, { start(THREADS, 24), ABI_KNOWN_NONE }, { start(THREADS, UINT32_MAX - 7), ABI_KNOWN_NONE },
		{ start(THREADS, 4), ABI_KNOWN_NONE },
		{ stop(ARRAY, 0, ABI_STOP_SUM), ABI_KNOWN_STOP }, { stop(USED, 0, ABI_STOP_QUANTIZE), ABI_KNOWN_STOP },
		{ stop(FIRST, 1, ABI_STOP_SUM), ABI_KNOWN_STOP }, { stop(FIRST, 2, ABI_STOP_SUM), ABI_KNOWN_STOP },
		{ stop(WIDE, 1, ABI_STOP_AVG), ABI_KNOWN_STOP }, { stop(WIDE, 1, ABI_STOP_AVG | ABI_STOP_KEEPS), ABI_KNOWN_STOP },
		/* Too few words, too many; a table without keys and the reverse; one of the tables is another; no such way, no such maps. */
		{ stop(ARRAY, 0, ABI_STOP_AVG), ABI_KNOWN_NONE }, { stop(USED, 0, ABI_STOP_SUM), ABI_KNOWN_NONE },
		{ stop(FIRST, 1, ABI_STOP_QUANTIZE), ABI_KNOWN_NONE }, { stop(WIDE, 1, ABI_STOP_SUM), ABI_KNOWN_NONE },
		{ stop(FIRST, 0, ABI_STOP_SUM), ABI_KNOWN_NONE }, { stop(ARRAY, 1, ABI_STOP_SUM), ABI_KNOWN_NONE },
		{ stop(FIRST, 3, ABI_STOP_SUM), ABI_KNOWN_NONE }, { stop(ARRAY, 0, ABI_STOP_WAYS), ABI_KNOWN_NONE },
		{ stop(ARRAY, 0, ABI_STOP_WAYS | ABI_STOP_KEEPS), ABI_KNOWN_NONE }, { stop(ARRAY, 0, 32), ABI_KNOWN_NONE },
		{ stop(FIRST, UINT32_MAX, ABI_STOP_SUM), ABI_KNOWN_NONE }, { stop(MAPS, 0, ABI_STOP_SUM), ABI_KNOWN_NONE },
		{ stop(OUT, 0, ABI_STOP_SUM), ABI_KNOWN_NONE },
		{ { .known = ABI_KNOWN_RECORD, .rec_strsize = 256 }, ABI_KNOWN_NONE }, { { .known = 77 }, ABI_KNOWN_NONE },
	};

	(void)state;
	for (size_t k = 0; k < sizeof(cases) / sizeof(*cases); k++) {
		struct span p = span_of(&shm, &cases[k].fire);

		if (p.what != cases[k].what)
			fail_msg("case %zu", k);
	}
	assert_int_equal(span_of(&shm, &cases[9].fire).words, 320);
	assert_int_equal(span_of(&shm, &cases[9].fire).used, 0);
	assert_int_equal(span_of(&shm, &cases[10].fire).used, 127);
}

static void records(void **state)
{
	const struct { struct abi_fire fire; bool good; } cases[] = {
		{ { .known = ABI_KNOWN_RECORD, .rec_fields = 0x76543210, .rec_nfields = 8, .rec_strsize = 256 }, true },
		{ { .known = ABI_KNOWN_RECORD, .rec_fields = 0x8, .rec_nfields = 1, .rec_strsize = 1 }, true },
		{ { .known = ABI_KNOWN_RECORD, .rec_strsize = 256 }, true },
		{ { .known = ABI_KNOWN_RECORD, .rec_fields = 0x9, .rec_nfields = 1, .rec_strsize = 256 }, false },
		{ { .known = ABI_KNOWN_RECORD, .rec_fields = 0xf0, .rec_nfields = 2, .rec_strsize = 256 }, false },
		{ { .known = ABI_KNOWN_RECORD, .rec_nfields = 9, .rec_strsize = 256 }, false },
		{ { .known = ABI_KNOWN_RECORD, .rec_nfields = UINT32_MAX, .rec_strsize = 256 }, false },
		{ { .known = ABI_KNOWN_RECORD, .rec_fields = 4, .rec_nfields = 1, .rec_strsize = 0 }, false },
		{ { .known = ABI_KNOWN_RECORD, .rec_fields = 0x44, .rec_nfields = 2, .rec_strsize = UINT32_MAX }, false },
		{ { .known = ABI_KNOWN_START, .rec_strsize = 256 }, false },
	};

	(void)state;
	for (size_t k = 0; k < sizeof(cases) / sizeof(*cases); k++)
		if ((emit_of(&shm, &cases[k].fire).out == &maps[OUT]) != cases[k].good)
			fail_msg("case %zu", k);
	shm.nmaps = OUT;
	assert_null(emit_of(&shm, &cases[0].fire).out);
	shm.nmaps = MAPS;
}

/* --- a record ----------------------------------------------------------------------------------------- */

static struct segment segment;
static struct shm real;
static struct shm_run run;

static int set_up(void **state)
{
	(void)state;
	segment_begin(&segment, &real, &run);
	((struct abi_control *)(void *)segment.data)->state = ABI_STATE_ACTIVE;
	agent_thread.tid = 4711;
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	segment_end(&segment, &real, &run);
	return 0;
}

static const uint64_t *first_record(void)
{
	return (const uint64_t *)(void *)(run.lane + real.maps[SEG_OUT].off);
}

static uint64_t head(void)
{
	return ((const struct abi_lane *)(const void *)run.lane)->head;
}

static void one_record(void **state)
{
	static const char file[] = "a/file.py", name[] = "\xc3\xa9t\xc3\xa9";
	const struct abi_fire fire = { .known = ABI_KNOWN_RECORD, .rec = 5, .rec_strsize = 8, .rec_nfields = 7,
				       .rec_fields = ABI_FIELD_TEXT1 | ABI_FIELD_ARG2 << 4 | ABI_FIELD_PID << 8 | ABI_FIELD_TID << 12 |
						     ABI_FIELD_TIME << 16 | ABI_FIELD_ARG3 << 20 | ABI_FIELD_ARG0 << 24 };
	const struct shm_record e = emit_of(&real, &fire);
	const struct abi_record *r = (const struct abi_record *)(const void *)(first_record() + 1);
	const uint64_t *slots = (const uint64_t *)(const void *)(r + 1);

	(void)state;
	assert_true(emit_record(&e, &run, 9, (uint64_t)(uintptr_t)file, (uint64_t)(uintptr_t)name, (uint64_t)-1));
	assert_int_equal(r->rec, 5);
	assert_int_equal(r->probe, 9);
	assert_int_equal(r->tid, 4711);
	assert_int_equal(r->pid, getpid());
	assert_int_equal(r->size, sizeof(*r) + 7 * 8 + 8);
	assert_int_equal(slots[0], (uint64_t)sizeof(name) << 32 | (sizeof(*r) + 7 * 8));
	assert_string_equal((const char *)r + (uint32_t)slots[0], name);
	assert_int_equal(slots[1], (uint64_t)-1);
	assert_int_equal(slots[2], getpid());
	assert_int_equal(slots[3], 4711);
	assert_int_equal(slots[4], r->time_ns);
	assert_int_equal(slots[5], 0);
	assert_int_equal(slots[6], (uint64_t)(uintptr_t)file);
	assert_int_equal(head(), r->size + ABI_RING_HEADER);
}

/* A long string, a thread whose number is not known, a session that has ended, a full ring: then the program runs. */
static void left_to_the_program(void **state)
{
	const struct abi_fire fire = { .known = ABI_KNOWN_RECORD, .rec_strsize = 8, .rec_nfields = 1, .rec_fields = ABI_FIELD_TEXT0 };
	const struct shm_record e = emit_of(&real, &fire);
	struct abi_control *control = (struct abi_control *)(void *)segment.data;
	const uint64_t file = (uint64_t)(uintptr_t)"short";
	unsigned n = 0;

	(void)state;
	assert_false(emit_record(&e, &run, 0, (uint64_t)(uintptr_t)"longer than that", 0, 0));
	agent_thread.tid = 0;
	assert_false(emit_record(&e, &run, 0, file, 0, 0));
	agent_thread.tid = 4711;
	control->state = ABI_STATE_DRAINING;
	assert_false(emit_record(&e, &run, 0, file, 0, 0));
	control->state = ABI_STATE_ACTIVE;
	run.running = true;
	assert_false(emit_record(&e, &run, 0, file, 0, 0));
	run.running = false;
	assert_int_equal(head(), 0);
	while (emit_record(&e, &run, 0, file, 0, 0))
		assert_true(++n < SEG_RING / 48);
	assert_true(n > SEG_RING / 64 - 3);
	assert_true(head() <= SEG_RING);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(spans),
		cmocka_unit_test(records),
		cmocka_unit_test_setup_teardown(one_record, set_up, tear_down),
		cmocka_unit_test_setup_teardown(left_to_the_program, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
