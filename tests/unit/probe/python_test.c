/*
 * Which of two markers of one name is taken: the interpreter's or the agent's.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "abi/segment.h"
#include "base/arena.h"
#include "probe/module.h"
#include "probe/provider.h"
#include "probe/python.h"

enum { V39 = 0x0309, V310 = 0x030a, V311 = 0x030b, V313 = 0x030d, V315 = 0x030f };

static struct marker own_markers[] = {
	{ .prov = "python", .raw = "function__entry" }, { .prov = "python", .raw = "function__return" },
	{ .prov = "python", .raw = "line" }, { .prov = "python", .raw = "gc__start" }, { .prov = "other", .raw = "audit" },
};
static struct marker agent_markers[] = {
	{ .prov = "python", .raw = "function__entry" }, { .prov = "python", .raw = "function__return" },
	{ .prov = "python", .raw = "line" }, { .prov = "python", .raw = "gc__start" }, { .prov = "python", .raw = "audit" },
};
static struct module own = { .name = "python3", .markers = own_markers, .nmarkers = 5 };
static struct module agent = { .name = PYTHON_AGENT, .markers = agent_markers, .nmarkers = 5, .python.is_agent = true };
static struct module other_agent = { .name = PYTHON_AGENT, .python.is_agent = true };

/* What a description of module @mod takes in an interpreter with the agent or without: 'o'wn, 'a'gent, 'b'oth, '-'. */
static char takes(uint16_t version, bool with_agent, enum python_mode mode, const char *mod, const char *name)
{
	struct module *modules[] = { &own, &agent };
	struct python_process p = {
		.version = version, .modules = modules, .nmodules = with_agent ? 2 : 1, .agent = with_agent ? &agent : NULL,
	};
	struct probe_desc desc = { .prov = "", .mod = mod, .func = "", .name = "" };
	bool o = python_takes(&p, mode, &desc, &own, name);
	bool a = with_agent && python_takes(&p, mode, &desc, &agent, name);

	assert_false(python_takes(&p, mode, &desc, &other_agent, name));
	return o && a ? 'b' : o ? 'o' : a ? 'a' : '-';
}

static void automatic(void **state)
{
	static const struct {
		uint16_t version;
		const char *taken;	/* entry, return, line, gc-start, audit */
	} rows[] = { { V39, "ooooa" }, { V310, "ooooa" }, { V311, "aaaoa" }, { V313, "ooooa" }, { V315, "aaooa" } };
	static const char *const names[] = { "function__entry", "function__return", "line", "gc__start", "audit" };

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		for (size_t j = 0; j < 5; j++) {
			assert_int_equal(takes(rows[i].version, true, PYTHON_AUTO, "", names[j]), rows[i].taken[j]);
			assert_int_equal(takes(rows[i].version, true, PYTHON_AUTO, "*", names[j]), rows[i].taken[j]);
			/* Unsound is better than nothing. */
			assert_int_equal(takes(rows[i].version, false, PYTHON_AUTO, "", names[j]), 'o');
		}
	}
}

static void by_option(void **state)
{
	(void)state;
	assert_int_equal(takes(V39, true, PYTHON_ALWAYS, "", "line"), 'a');
	assert_int_equal(takes(V39, true, PYTHON_ALWAYS, "", "nosuch"), 'o');	/* the agent has none of that name */
	assert_int_equal(takes(V311, true, PYTHON_NEVER, "", "line"), 'o');
	assert_int_equal(takes(V311, true, PYTHON_NEVER, "", "audit"), 'o');
}

/* A module that a description names is meant; which one that is the caller has looked at. */
static void by_name(void **state)
{
	(void)state;
	assert_int_equal(takes(V311, true, PYTHON_AUTO, "python3", "line"), 'b');
	assert_int_equal(takes(V39, true, PYTHON_NEVER, PYTHON_AGENT, "line"), 'b');
}

static void reasons(void **state)
{
	(void)state;
	assert_null(python_unsound(V39, "function__entry"));
	assert_null(python_unsound(0, "function__entry"));
	assert_null(python_unsound(V311, "gc__start"));
	assert_null(python_unsound(V315, "audit"));
	assert_non_null(strstr(python_unsound(V311, "line"), "crash"));
	assert_non_null(python_unsound(V315, "function__return"));
	assert_non_null(python_unsound(V315 + 1, "function__return"));
}

/* --- looks at a process, each of which leaves nothing -------------------------------------------------- */

static const struct probe_desc any = { .prov = "python*", .mod = "", .func = "", .name = "function-entry" };

static void look(struct probe_set *set, uint32_t pid)
{
	struct python_process p = { 0 };

	assert_int_equal(python_look(&p, set, pid), 0);
	assert_true(p.nmodules > 1);
	python_done(&p, set);
}

static void look_again(struct probe_set *set, uint32_t pid)
{
	struct python_process p = { 0 };

	assert_int_equal(python_look_again(&p, set, pid), 0);
	assert_true(p.nmodules > 1);
	python_done(&p, set);
}

/* Of another process at each turn, by what the row has. */
static void look_by_turns(struct probe_set *set, uint32_t pid)
{
	struct python_process p = { 0 };

	python_look_again(&p, set, pid + 1024);
	python_done(&p, set);
	look_again(set, pid);
}

static void serves(struct probe_set *set, uint32_t pid)
{
	probe_agent_serves(set, pid, &any);
}

static void serves_later(struct probe_set *set, uint32_t pid)
{
	probe_agent_serves_later(set, pid, &any);
}

static void leave(struct probe_set *set, uint32_t pid)
{
	probe_agent_leave(set, pid);
}

static void is_python(struct probe_set *set, uint32_t pid)
{
	probe_is_python(set, pid);
}

/* An executable mapping of a new file, as a segment's code has. */
static void map_code(void **at)
{
	int fd = memfd_create(ABI_CODE, MFD_CLOEXEC);

	assert_int_equal(ftruncate(fd, 4096), 0);
	if (*at)
		munmap(*at, 4096);
	*at = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);
	assert_ptr_not_equal(*at, MAP_FAILED);
	close(fd);
}

static void nothing_is_kept(void **state)
{
	static void (*const looks[])(struct probe_set *set, uint32_t pid) = {
		look, look_again, look_by_turns, serves, serves_later, leave, is_python,
	};
	void *code = NULL;

	(void)state;
	for (size_t i = 0; i < sizeof(looks) / sizeof(looks[0]); i++) {
		struct probe_set *set = probe_set_new();
		size_t used;

		map_code(&code);
		looks[i](set, (uint32_t)getpid());
		used = arena_used(set_arena(set));
		for (int k = 0; k < 100; k++) {
			map_code(&code);
			looks[i](set, (uint32_t)getpid());
		}
		assert_int_equal(arena_used(set_arena(set)), used);
		probe_set_free(set);
	}
	munmap(code, 4096);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(automatic), cmocka_unit_test(by_option), cmocka_unit_test(by_name),
		cmocka_unit_test(reasons),   cmocka_unit_test(nothing_is_kept),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
