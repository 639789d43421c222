#include "session/stream.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "abi/record.h"

struct seen {
	uint64_t times[16];
	uint32_t probes[16];
	unsigned int n, stop_after;
};

static int see(void *ctx, const struct record *rec, const struct record *next)
{
	const struct abi_record *r = rec->hdr;
	struct seen *s = ctx;

	assert_int_equal(rec->size, r->size);
	assert_true(!next || next->hdr->time_ns >= r->time_ns);
	s->times[s->n] = r->time_ns;
	s->probes[s->n++] = r->probe;
	return s->n == s->stop_after ? 7 : 0;
}

static void put(struct stream *s, uint64_t time_ns, uint32_t probe)
{
	struct abi_record r = { .time_ns = time_ns, .probe = probe, .size = sizeof(r) };

	assert_int_equal(stream_add(s, &(struct record){ &r, sizeof(r) }), 0);
}

static void hands_on_in_time_order(void **state)
{
	struct stream s = { 0 };
	struct seen seen = { 0 };

	(void)state;
	put(&s, 30, 0);
	put(&s, 10, 1);
	put(&s, 20, 2);
	put(&s, 20, 3);
	put(&s, 40, 4);
	assert_int_equal(stream_take(&s, 25, see, &seen), 0);
	assert_int_equal(seen.n, 3);
	assert_int_equal(seen.probes[0], 1);
	assert_int_equal(seen.probes[1], 2);
	assert_int_equal(seen.probes[2], 3);	/* same time: as written */
	put(&s, 27, 5);				/* a late one, earlier than what is held */
	assert_int_equal(stream_take(&s, UINT64_MAX, see, &seen), 0);
	assert_int_equal(seen.n, 6);
	assert_int_equal(seen.times[3], 27);
	assert_int_equal(seen.times[4], 30);
	assert_int_equal(seen.times[5], 40);
	assert_int_equal(s.n, 0);
	stream_fini(&s);
}

static void stops_when_told(void **state)
{
	struct stream s = { 0 };
	struct seen seen = { .stop_after = 2 };

	(void)state;
	put(&s, 1, 0);
	put(&s, 2, 0);
	put(&s, 3, 0);
	assert_int_equal(stream_take(&s, UINT64_MAX, see, &seen), 7);
	assert_int_equal(seen.n, 2);
	assert_int_equal(s.n, 1);
	assert_int_equal(stream_take(&s, UINT64_MAX, see, &seen), 0);
	assert_int_equal(seen.times[2], 3);
	stream_fini(&s);
}

static void refuses_what_is_no_record(void **state)
{
	struct abi_record r = { .size = sizeof(r) + 8 };
	struct stream s = { 0 };

	(void)state;
	assert_int_equal(stream_add(&s, &(struct record){ &r, 8 }), -EINVAL);
	assert_int_equal(stream_add(&s, &(struct record){ &r, sizeof(r) }), -EINVAL);
	assert_int_equal(s.n, 0);
	stream_fini(&s);
}

static void put_on(struct stream *s, uint64_t time_ns, uint32_t probe, uint32_t cpu)
{
	struct abi_record r = { .time_ns = time_ns, .probe = probe, .size = sizeof(r), .cpu = cpu };

	assert_int_equal(stream_add(s, &(struct record){ &r, sizeof(r) }), 0);
}

static void keeps_the_last_of_each_cpu(void **state)
{
	struct stream s = { 0 };
	struct seen seen = { 0 };

	(void)state;
	for (uint32_t i = 0; i < 6; i++)
		put_on(&s, 10 * i, i, i == 0);
	assert_int_equal(stream_keep_last(&s, 2 * sizeof(struct abi_record) + 8), 0);
	assert_int_equal(stream_take(&s, UINT64_MAX, see, &seen), 0);
	assert_int_equal(seen.n, 3);		/* the only one of CPU 1, and two of CPU 0 */
	assert_int_equal(seen.probes[0], 0);
	assert_int_equal(seen.probes[1], 4);
	assert_int_equal(seen.probes[2], 5);
	assert_int_equal(stream_keep_last(&s, 100), 0);
	stream_fini(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(hands_on_in_time_order),
		cmocka_unit_test(keeps_the_last_of_each_cpu),
		cmocka_unit_test(stops_when_told),
		cmocka_unit_test(refuses_what_is_no_record),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
