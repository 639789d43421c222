/* Programs in the target place, as the agent runs them: counts, records, losses. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "inside.h"
#include "vm/record.h"

#define ENTRY "python123:::function-entry "

static const struct ebpf_sizes sizes = { .bufsize = 1 << 16, .aggsize = 1 << 16, .dynvarsize = 1 << 16, .nprobes = 1,
					 .ncpus = 2 };

static void counts_by_name(void **state)
{
	struct inside in;
	char long_name[400];

	(void)state;
	memset(long_name, 'x', sizeof(long_name) - 1);
	long_name[sizeof(long_name) - 1] = '\0';
	for (int compile = 0; compile < 2; compile++) {
		unsigned int times;

		inside_make(&in, ENTRY "{ @[copyinstr(arg1)] = count(); }", &sizes, compile);
		for (int k = 0; k < 1000; k++) {
			char name[40];		/* names of all three key sizes, one address for all */

			snprintf(name, sizeof(name), "%.*s%d", k % 3 ? 3 : 20, "name_of_a_function_that", k % 10);
			inside_fire(&in, "file", name, k);
		}
		for (int k = 0; k < 300; k++)
			inside_fire(&in, "file", long_name + 399 - k - 1, k);
		inside_fire(&in, "file", "", 0);
		assert_int_equal(inside_count(&in, 0, "", &times), 1);
		assert_int_equal(times, 1);
		assert_int_equal(inside_count(&in, 0, "name_of_a_function_t0", NULL), 34);
		assert_int_equal(inside_count(&in, 0, "nam0", NULL), 66);
		for (int k = 1; k < 300; k++) {
			char key[301];

			memset(key, 'x', sizeof(key));
			key[k > 255 ? 255 : k] = '\0';
			assert_int_equal(inside_count(&in, 0, key, &times), k < 255 ? 1 : 300 - 254);
			assert_int_equal(times, 1);
		}
		assert_int_equal(inside_drops(&in, ABI_DROP_AGG), 0);
		inside_free(&in);
	}
}

/* Several clauses of one program may fault, each by itself. */
static void faults(void **state)
{
	struct inside in;

	(void)state;
	for (int compile = 0; compile < 2; compile++) {
		inside_make(&in, ENTRY "{ @[\"a\"] = sum(6 / arg2); } " ENTRY "{ @[\"b\"] = sum(10 / (arg2 - 1)); } "
				 ENTRY "{ @[\"c\"] = sum(arg2); }", &sizes, compile);
		for (int k = 0; k < 3; k++)
			inside_fire(&in, "file", "f", k);
		assert_int_equal(inside_count(&in, 0, "a", NULL), 6 + 3);
		assert_int_equal(inside_count(&in, 0, "b", NULL), (uint64_t)-10 + 10);
		assert_int_equal(inside_count(&in, 0, "c", NULL), 3);
		inside_free(&in);
	}
}

/* More keys than fit are counted losses; those that are in go on counting. */
static void full(void **state)
{
	struct inside in;
	uint64_t all = 0;
	char name[40];

	(void)state;
	inside_make(&in, ENTRY "{ @[copyinstr(arg1)] = count(); }", &sizes, true);
	for (int round = 0; round < 3; round++) {
		for (int k = 0; k < 5000; k++) {
			snprintf(name, sizeof(name), "f%d", k);
			inside_fire(&in, "file", name, k);
		}
	}
	for (int k = 0; k < 5000; k++) {
		uint64_t n;

		snprintf(name, sizeof(name), "f%d", k);
		n = inside_count(&in, 0, name, NULL);
		assert_true(n == 3 || (!n && k > 100));
		all += n;
	}
	assert_int_equal(all + inside_drops(&in, ABI_DROP_AGG), 15000);
	inside_free(&in);
}

struct heard {
	unsigned int n;
	uint64_t last;
};

static int hear(void *ctx, const struct record *rec)
{
	const struct abi_record *r = rec->hdr;
	struct heard *h = ctx;

	assert_true(rec->size >= sizeof(*r) && r->size == rec->size);
	assert_true(r->time_ns >= h->last);
	assert_int_equal(r->pid, getpid());
	h->last = r->time_ns;
	h->n++;
	return 0;
}

static void records(void **state)
{
	struct heard h = { 0 };
	struct inside in;

	(void)state;
	inside_make(&in, ENTRY "{ self->n++; a[arg2, copyinstr(arg0)] = self->n; "
		    "printf(\"%s %d %d\", copyinstr(arg1), arg2, a[arg2, \"file\"]); }", &sizes, true);
	for (int k = 0; k < 3000; k++) {
		inside_fire(&in, "file", "f", k % 50);
		if (k == 1000)
			assert_true(in.place->ops->drain(in.place, hear, &h) > 0);
	}
	in.place->ops->drain(in.place, hear, &h);
	assert_int_equal(h.n + inside_drops(&in, ABI_DROP_RECORD), 3000);
	assert_true(h.n > 500);
	inside_free(&in);
}

/* Addresses that nobody vouches for. */
static void any_address(void **state)
{
	char *page = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct inside in;

	(void)state;
	munmap(page + 4096, 4096);
	memcpy(page + 4096 - 6, "hello", 6);
	memcpy(page + 100, "there", 6);
	memset(page + 4000, 'y', 90);
	for (int compile = 0; compile < 2; compile++) {
		inside_make(&in, ENTRY "{ @[copyinstr((uintptr_t)arg2 == 0 ? 0 : arg0 + arg2)] = count(); }", &sizes, compile);
		in.run.nstrings = 0;
		for (int k = 0; k < 2; k++) {
			inside_fire(&in, page, "", 4096 - 6);
			inside_fire(&in, page, "", 4096 - 3);
			inside_fire(&in, page, "", 100);
			inside_fire(&in, page, "", 0);
			inside_fire(&in, page, "", 4096);
		}
		page[4095] = 'z';
		inside_fire(&in, page, "", 4090);	/* runs out of the page */
		page[4095] = '\0';
		assert_int_equal(inside_count(&in, 0, "hello", NULL), 2);
		assert_int_equal(inside_count(&in, 0, "lo", NULL), 2);
		assert_int_equal(inside_count(&in, 0, "there", NULL), 2);
		assert_int_equal(inside_count(&in, 0, "", NULL), 0);
		inside_free(&in);
	}
	munmap(page, 4096);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(counts_by_name),
		cmocka_unit_test(faults),
		cmocka_unit_test(full),
		cmocka_unit_test(records),
		cmocka_unit_test(any_address),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
