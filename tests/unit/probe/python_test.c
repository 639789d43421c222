/*
 * Which of two markers of one name is taken: the interpreter's or the agent's.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "probe/module.h"
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(automatic), cmocka_unit_test(by_option), cmocka_unit_test(by_name),
		cmocka_unit_test(reasons),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
