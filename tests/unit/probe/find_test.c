/*
 * Finding probes without a system to look at: built-in probes, timers, ids, the resolver, operands.
 */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "bpf/ebpf.h"
#include "probe/probe.h"

static struct probe_desc desc(const char *prov, const char *name)
{
	return (struct probe_desc){ .prov = prov, .mod = "", .func = "", .name = name };
}

/* The only probe of a description, or NULL. */
static struct probe *only(struct probe_set *set, struct probe_desc d)
{
	struct probe_list list = { 0 };
	size_t n = probe_find(set, &d, PROBE_ENABLE, &list);

	assert_in_range(n, 0, 1);
	assert_int_equal(n, list.n);
	return n ? list.probes[0] : NULL;
}

static void builtin(void **state)
{
	static const char *const names[] = { "BEGIN", "END", "ERROR" };
	struct probe_set *set = probe_set_new();
	struct probe_list list = { 0 };
	struct probe_desc d = desc("dtrace", "");

	(void)state;
	for (uint32_t i = 0; i < 3; i++) {
		struct probe *p = only(set, desc("", names[i]));

		assert_non_null(p);
		assert_int_equal(p->id, i + 1);
		assert_int_equal(p->kind, PROBE_BEGIN + i);
		assert_ptr_equal(p, only(set, desc("dtrace", names[i])));
		assert_ptr_equal(p, probe_get(set, i + 1));
	}
	assert_null(only(set, desc("profile", "BEGIN")));
	assert_null(only(set, desc("dtrace", "nothing")));
	assert_int_equal(probe_find(set, &d, PROBE_LIST, &list), 3);
	d.mod = "a";
	assert_int_equal(probe_find(set, &d, PROBE_LIST, &list), 0);
	d.mod = "*";
	assert_int_equal(probe_find(set, &d, PROBE_LIST, &list), 3);
	assert_int_equal(list.n, 6);
	assert_null(probe_get(set, 0));
	assert_null(probe_get(set, 4));
	probe_set_free(set);
	probe_set_free(NULL);
}

static void intervals(void **state)
{
	static const struct {
		const char *name;
		enum probe_kind kind;
		uint64_t ns;	/* 0: refused */
	} rows[] = {
		{ "tick-1", PROBE_TICK, 1000000000 },	    { "tick-1s", PROBE_TICK, 1000000000 },
		{ "tick-10sec", PROBE_TICK, 10000000000 },  { "profile-97", PROBE_PROFILE, 1000000000 / 97 },
		{ "profile-97hz", PROBE_PROFILE, 1000000000 / 97 }, { "tick-5000", PROBE_TICK, 200000 },
		{ "tick-500us", PROBE_TICK, 500000 },	    { "tick-500usec", PROBE_TICK, 500000 },
		{ "tick-20ms", PROBE_TICK, 20000000 },	    { "tick-20msec", PROBE_TICK, 20000000 },
		{ "tick-2m", PROBE_TICK, 120000000000 },    { "tick-2min", PROBE_TICK, 120000000000 },
		{ "tick-1h", PROBE_TICK, 3600000000000 },   { "tick-1hour", PROBE_TICK, 3600000000000 },
		{ "tick-1d", PROBE_TICK, 86400000000000 },  { "tick-1day", PROBE_TICK, 86400000000000 },
		{ "tick-300000ns", PROBE_TICK, 300000 },    { "tick-300000nsec", PROBE_TICK, 300000 },
		{ "tick-1SEC", PROBE_TICK, 1000000000 },
		{ "tick-5001", PROBE_TICK, 0 },		    { "tick-100us", PROBE_TICK, 0 },
		{ "tick-0", PROBE_TICK, 0 },		    { "tick-", PROBE_TICK, 0 },
		{ "tick-1x", PROBE_TICK, 0 },		    { "tick--1", PROBE_TICK, 0 },
		{ "tick-99999999999999999999", PROBE_TICK, 0 }, { "profile-999999999999d", PROBE_PROFILE, 0 },
		{ "profile-1e9", PROBE_PROFILE, 0 },
	};
	struct probe_set *set = probe_set_new();

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct probe *p = only(set, desc("profile", rows[i].name));

		if (!rows[i].ns) {
			assert_null(p);
			assert_int_equal(strncmp(probe_why(set), rows[i].name, strlen(rows[i].name)), 0);
			continue;
		}
		assert_non_null(p);
		assert_int_equal(p->kind, rows[i].kind);
		assert_int_equal(p->period_ns, rows[i].ns);
		assert_string_equal(p->name, rows[i].name);
		assert_string_equal(p->prov, "profile");
		assert_string_equal(probe_why(set), "");
	}
	probe_set_free(set);
}

/* A pattern finds the usual timers and those that were named before, each once. */
static void timer_patterns(void **state)
{
	struct probe_set *set = probe_set_new();
	struct probe_list list = { 0 };
	struct probe_desc d = desc("profile", "tick-*");
	struct probe *mine = only(set, desc("", "tick-3s"));

	(void)state;
	assert_non_null(mine);
	assert_int_equal(probe_find(set, &d, PROBE_ENABLE, &list), 7);
	assert_ptr_equal(list.probes[0], mine);
	assert_int_equal(mine->id, 4);
	probe_set_free(set);
}

static void by_id(void **state)
{
	struct probe_set *set = probe_set_new();
	struct probe_desc d = desc("", "");
	struct probe *p;

	(void)state;
	d.id = 2;
	p = only(set, d);
	assert_string_equal(p->name, "END");
	d.id = 4;	/* not given yet: the first of a listing */
	p = only(set, d);
	assert_string_equal(p->name, "profile-97");
	d.id = 0xfffffff0;
	assert_null(only(set, d));
	probe_set_free(set);
}

static void providers_of_others(void **state)
{
	struct probe_desc start = { .prov = "proc", .mod = "", .func = "", .name = "nosuch" };
	struct probe_desc pid = { .prov = "io", .mod = "", .func = "", .name = "start" };
	struct probe_set *set = probe_set_new();
	struct probe_list found = { 0 };

	(void)state;
	assert_int_equal(probe_find(set, &start, PROBE_ENABLE, &found), 0);
	assert_non_null(strstr(probe_why(set), "the kernel has no tracepoint for it"));
	assert_int_equal(probe_find(set, &pid, PROBE_ENABLE, &found), 0);
	assert_non_null(strstr(probe_why(set), "the io provider is not supported: rawtp:::block_rq_issue"));
	probe_set_free(set);
}

static void resolving(void **state)
{
	struct probe_set *set = probe_set_new();
	struct resolver r = probe_resolver(set);
	struct probe_desc begin = desc("", "BEGIN"), none = desc("dtrace", "none");
	struct probe_sig sig = { .nargs = 9 };
	bool same = false;

	(void)state;
	assert_int_equal(r.match(r.ctx, &begin, &sig, &same), 1);
	assert_true(same);
	assert_int_equal(sig.nargs, 0);
	assert_int_equal(r.match(r.ctx, &none, &sig, &same), 0);
	assert_false(same);
	assert_int_equal(r.match(r.ctx, &begin, NULL, NULL), 1);
	probe_set_free(set);
}

static void operands(void **state)
{
	struct site s = { .nargs = 0 };
	struct ebpf_operand op;

	(void)state;
	s.nargs = arch_operands(&arch_x86_64, "-4@%r13d 8@112(%rsp) 4@$-1 -1@$255 8@16(%rax,%rbx,4) 8@(,%rcx,8) "
				"4f@%xmm0 8f@8(%rbp) 1@%ah", s.args, PROBE_MAX_ARGS);
	assert_int_equal(s.nargs, 9);
	assert_null(probe_site_arg(&s, 0, &op));
	assert_true(op.loc == EBPF_LOC_REG && op.width == 4 && op.sign && op.reg_off == 16);
	assert_null(probe_site_arg(&s, 1, &op));
	assert_true(op.loc == EBPF_LOC_MEM && op.has_base && op.reg_off == 152 && op.value == 112 && !op.has_index);
	assert_null(probe_site_arg(&s, 2, &op));
	assert_true(op.loc == EBPF_LOC_CONST && op.value == 0xffffffff);
	assert_null(probe_site_arg(&s, 3, &op));
	assert_true(op.loc == EBPF_LOC_CONST && op.value == -1);
	assert_null(probe_site_arg(&s, 4, &op));
	assert_true(op.has_index && op.index_off == 40 && op.scale == 4 && op.reg_off == 80 && op.value == 16);
	assert_null(probe_site_arg(&s, 5, &op));
	assert_true(!op.has_base && op.has_index && op.scale == 8);
	assert_string_equal(probe_site_arg(&s, 6, &op), "in a vector register");
	assert_int_equal(op.loc, EBPF_LOC_NONE);
	assert_null(probe_site_arg(&s, 7, &op));
	assert_true(op.width == 8 && !op.sign);
	assert_null(probe_site_arg(&s, 8, &op));
	assert_true(op.reg_off == 81 && op.width == 1);
	assert_non_null(probe_site_arg(&s, 9, &op));
}

static void types(void **state)
{
	struct probe_arg a = { .size = 4, .sign = true };

	(void)state;
	assert_string_equal(probe_arg_type(&a), "int32_t");
	a.is_float = true;
	assert_string_equal(probe_arg_type(&a), "float");
	a = (struct probe_arg){ .size = 8 };
	assert_string_equal(probe_arg_type(&a), "uint64_t");
	a.type = "char *";
	assert_string_equal(probe_arg_type(&a), "char *");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(builtin),   cmocka_unit_test(intervals), cmocka_unit_test(timer_patterns),
		cmocka_unit_test(by_id),     cmocka_unit_test(resolving), cmocka_unit_test(operands),
		cmocka_unit_test(types),     cmocka_unit_test(providers_of_others),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
