/*
 * Parts of the agent that are a function or two: variables of the environment, other agents in the list of mappings, what is
 * measured, the mark of a pending call.
 */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "abi/agent.h"
#include "agent/agent.h"
#include "agent/breaker.h"
#include "agent/copies.h"
#include "agent/cost.h"
#include "agent/environ.h"

/* --- environ.c ---------------------------------------------------------------------------------------- */

enum { VARIABLES = 6 };

extern char **environ;

/* What is left of the variables of a process that was held at its exec; its address is taken. */
static void held(void **state)
{
	static const struct { const char *given[VARIABLES], *left[VARIABLES]; } rows[] = {
		{ { "A=1", ABI_AGENT_HELD "=dtap-1-x:word", "LD_PRELOAD=/agent.so", "B=2" }, { "A=1", "B=2" } },
		{ { "LD_PRELOAD=/agent.so:/theirs.so /more.so", ABI_AGENT_HELD "=dtap-1-x:word" }, { "LD_PRELOAD=/theirs.so /more.so" } },
		{ { "LD_PRELOAD=/agent.so /theirs.so", ABI_AGENT_HELD "=dtap-1-x:word", "LD_PRELOADED=/agent.so:x" },
		  { "LD_PRELOAD=/theirs.so", "LD_PRELOADED=/agent.so:x" } },
		{ { ABI_AGENT_HELD "=dtap-1-x:word", "A=" }, { "A=" } },
		{ { ABI_AGENT_HELD "=dtap-1-x:word", ABI_AGENT_HELD "=another" }, { NULL } },
	};
	char **own = environ;

	(void)state;
	for (unsigned k = 0; k < sizeof(rows) / sizeof(*rows); k++) {
		char texts[VARIABLES][64], *list[VARIABLES + 1] = { NULL };
		unsigned n;

		for (n = 0; n < VARIABLES && rows[k].given[n]; n++)
			list[n] = strcpy(texts[n], rows[k].given[n]);
		environ = list;
		environ_take_held();
		assert_true(environ_is_held());
		assert_string_equal(environ_address(), "dtap-1-x:word");
		for (n = 0; n < VARIABLES && rows[k].left[n]; n++)
			assert_string_equal(list[n], rows[k].left[n]);
		assert_null(list[n]);
		environ = own;
	}
}

/* An address that is longer than any is cut. */
static void long_address(void **state)
{
	char text[2 * ABI_AGENT_ADDRESS] = ABI_AGENT_HELD "=", *list[] = { text, NULL }, **own = environ;

	(void)state;
	memset(text + strlen(text), 'a', sizeof(text) - strlen(text) - 1);
	environ = list;
	environ_take_held();
	environ = own;
	assert_int_equal(strlen(environ_address()), ABI_AGENT_ADDRESS - 1);
	environ = NULL;
	environ_take_held();
	environ = own;
}

static void not_held(void **state)
{
	char a[] = "A=1", preload[] = "LD_PRELOAD=/theirs.so", almost[] = ABI_AGENT_HELD "S=1", *list[] = { a, preload, almost, NULL }, **own = environ;

	(void)state;
	assert_false(environ_is_held());
	environ = list;
	environ_take_held();
	environ = own;
	assert_false(environ_is_held());
	assert_ptr_equal(list[1], preload);
	assert_string_equal(preload, "LD_PRELOAD=/theirs.so");
	assert_ptr_equal(list[2], almost);
}

/* --- copies.c ----------------------------------------------------------------------------------------- */

/* Is another agent seen while a file of this name, in this folder, is mapped? */
static bool seen(const char *folder, const char *name)
{
	char path[4096];
	void *map;
	bool other;
	int fd;

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	assert_true(fd >= 0 && !ftruncate(fd, 4096));
	map = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, fd, 0);
	assert_ptr_not_equal(map, MAP_FAILED);
	other = copies_other();
	munmap(map, 4096);
	close(fd);
	unlink(path);
	return other;
}

static void copies(void **state)
{
	enum { FOLDERS = 14, NAME = 250 };
	char folder[4096] = "/tmp/dtap-copies-XXXXXX";
	size_t ends[FOLDERS + 1];
	unsigned k;

	(void)state;
	assert_false(copies_other());
	assert_non_null(mkdtemp(folder));
	assert_true(seen(folder, "dtap-agent.so"));
	assert_true(seen(folder, "dtap-agent-musl.so"));
	assert_false(seen(folder, "a-dtap-agent.so"));
	assert_false(seen(folder, "libc.so"));
	/* Lines that are almost as long as what is read at once, and longer with their addresses. */
	ends[0] = strlen(folder);
	for (k = 0; k < FOLDERS; k++) {
		folder[ends[k]] = '/';
		memset(folder + ends[k] + 1, 'd', NAME);
		ends[k + 1] = ends[k] + 1 + NAME;
		folder[ends[k + 1]] = '\0';
		assert_int_equal(mkdir(folder, 0700), 0);
		assert_false(seen(folder, "x.so"));
		assert_true(seen(folder, "dtap-agent.so"));
	}
	for (; k; k--) {
		rmdir(folder);
		folder[ends[k - 1]] = '\0';
	}
	rmdir(folder);
}

/* --- cost.c ------------------------------------------------------------------------------------------- */

/* Whatever the events take, those that are measured stand for all, and none that takes long is left out. */
static void measured(void **state)
{
	static const uint64_t took[] = { 0, 15, 100, 700, 1999, 2000, 100000 };

	(void)state;
	for (unsigned k = 0; k < sizeof(took) / sizeof(*took); k++) {
		enum { EVENTS = 200000 };
		uint64_t stand = 0, last = 0, runs = 0;
		struct abi_lane lane;

		memset(&lane, 0, sizeof(lane));
		agent_thread.cost = (struct thread_cost){ 0 };
		for (uint64_t n = 1; n <= EVENTS; n++) {
			uint32_t weight = cost_due();

			if (!weight)
				continue;
			assert_true(n == 1 || weight == n - last);
			last = n;
			stand += weight;
			runs++;
			cost_measured(&lane, weight, took[k]);
			cost_next(took[k]);
		}
		assert_true(stand <= EVENTS && stand + 256 >= EVENTS);
		if (took[k] >= 2000)
			assert_int_equal(runs, EVENTS);
		else
			assert_true(runs < EVENTS / (took[k] < 200 ? 4 : 1));
		if (took[k] > 12)
			assert_in_range(lane.spent_ps / EVENTS / 1000, (took[k] - 12) * 99 / 100, took[k] - 12);
	}
}

/* --- breaker.c ---------------------------------------------------------------------------------------- */

/* An interpreter of words: those that breaker.c looks at, and nothing else. */
static int interp[1024];

static struct pyinterp *the_interp(void)
{
	return (struct pyinterp *)(void *)interp;
}

static int call(void *unused)
{
	(void)unused;
	return 0;
}

static int other_call(void *unused)
{
	(void)unused;
	return 0;
}

/* By word of the interpreter: struct _ceval_state and _pending_calls of 3.9, 3.10 and 3.11. */
static const struct layout {
	int minor, limit, mark, lock, calls_to_do, async_exc, calls, first, last;
} layouts[] = {
	{ 9, 16, 18, 20, 22, 23, 24, 152, 153 }, { 10, 16, 17, 20, 22, 23, 24, 152, 153 }, { 11, 24, 25, 28, 30, 31, 32, 160, 161 },
};

static void put_call(const struct layout *l, int k, int (*fn)(void *))
{
	memcpy(&interp[l->calls + 4 * k], &fn, sizeof(fn));
}

/* @ncalls have been added, the last one at @last - 1. */
static void lay_out(const struct layout *l, int first, int last)
{
	memset(interp, 0, sizeof(interp));
	interp[l->limit] = 1000;
	interp[l->lock] = 0x258df100;
	interp[l->calls_to_do] = 1;
	interp[l->first] = first;
	interp[l->last] = last;
	put_call(l, (last + 31) % 32, call);
}

/* The mark, and nothing else, is written. */
static void marks(const struct layout *l, bool expected)
{
	static int before[1024];

	memcpy(before, interp, sizeof(before));
	breaker_set(call);
	before[l->mark] |= expected;
	assert_memory_equal(before, interp, sizeof(before));
}

static void marked(void **state)
{
	(void)state;
	agent.py.PyInterpreterState_Main = the_interp;
	for (unsigned i = 0; i < sizeof(layouts) / sizeof(*layouts); i++) {
		const struct layout *l = &layouts[i];
		const int wrong[][2] = { { l->limit, 0 }, { l->limit, -1 }, { l->mark, 2 }, { l->mark + 1, 5 }, { l->lock, 0 }, { l->lock, 3 },
					 { l->calls_to_do, 7 }, { l->async_exc, -1 }, { l->first, 32 }, { l->first, -1 }, { l->last, 32 },
					 { l->last, 3 }, { l->last, -5 } };

		agent.py.minor = l->minor;
		for (int last = 0; last < 32; last++) {
			lay_out(l, (last + 20) % 32, last);
			put_call(l, (last + 13) % 32, call);		/* an earlier one */
			marks(l, true);
		}
		for (unsigned k = 0; k < sizeof(wrong) / sizeof(*wrong); k++) {
			lay_out(l, 7, 8);
			interp[wrong[k][0]] = wrong[k][1];
			marks(l, false);
		}
		lay_out(l, 7, 8);
		put_call(l, 7, other_call);				/* somebody else's was added since */
		marks(l, false);
	}
	lay_out(&layouts[2], 7, 8);
	for (agent.py.minor = 0; agent.py.minor < 20; agent.py.minor++)
		if (agent.py.minor != 11)
			marks(&layouts[2], false);
	agent.py.minor = 0;
	agent.py.PyInterpreterState_Main = NULL;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(not_held),
		cmocka_unit_test(held),
		cmocka_unit_test(long_address),
		cmocka_unit_test(copies),
		cmocka_unit_test(measured),
		cmocka_unit_test(marked),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
