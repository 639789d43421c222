/*
 * The markers of real programs, compared with what readelf -n says of the same file: provider, name,
 * location, semaphore, arguments, in the same order.  Programs that are not installed are skipped.
 */
#include <glob.h>
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/strbuf.h"
#include "elf/obj.h"

struct seen {
	char prov[256], name[256], args[512];
	uint64_t addr, sem;
};

/* The next marker of readelf's output.  Locations there are not corrected for prelink: neither are the files. */
static bool next_marker(FILE *f, struct seen *s)
{
	char line[1024];
	unsigned int got = 0;

	memset(s, 0, sizeof(*s));
	while (fgets(line, sizeof(line), f)) {
		line[strcspn(line, "\n")] = '\0';
		if (sscanf(line, "    Provider: %255s", s->prov) == 1) {
			got = 1;
		} else if (sscanf(line, "    Name: %255s", s->name) == 1) {
			got++;
		} else if (sscanf(line, "    Location: %" SCNx64 ", Base: %*x, Semaphore: %" SCNx64, &s->addr, &s->sem) == 2) {
			got++;
		} else if (!strncmp(line, "    Arguments: ", 15) && got == 3) {
			snprintf(s->args, sizeof(s->args), "%.500s", line + 15);
			return true;
		}
	}
	return false;
}

static size_t compare(const char *path)
{
	const struct obj_marker *m;
	struct strbuf why = { 0 }, cmd = { 0 };
	struct seen s;
	struct obj *o;
	size_t n, i = 0;
	FILE *f;

	if (obj_open(path, &o, &why) || obj_markers(o, &m, &n, &why))
		fail_msg("%s", strbuf_str(&why));
	strbuf_printf(&cmd, "LC_ALL=C readelf -n '%s' 2>/dev/null", path);
	f = popen(strbuf_str(&cmd), "r");
	assert_non_null(f);
	for (; next_marker(f, &s); i++) {
		uint64_t off;

		assert_true(i < n);
		assert_string_equal(m[i].prov, s.prov);
		assert_string_equal(m[i].name, s.name);
		assert_string_equal(m[i].args, s.args);
		assert_int_equal(m[i].addr, s.addr);
		assert_int_equal(m[i].sem_addr, s.sem);
		assert_true(obj_offset(o, m[i].addr, true, &off));
		assert_int_equal(m[i].off, off);
		assert_true(!m[i].sem_addr == !m[i].sem_off);
	}
	pclose(f);
	assert_int_equal(i, n);
	obj_close(o);
	strbuf_fini(&why);
	strbuf_fini(&cmd);
	return n;
}

/* Every operand of every marker of the pythons can be read. */
static void operands_of(const char *path)
{
	struct arch_operand ops[12];
	const struct obj_marker *m;
	struct obj *o;
	size_t n;

	assert_int_equal(obj_open(path, &o, NULL), 0);
	assert_int_equal(obj_markers(o, &m, &n, NULL), 0);
	for (size_t i = 0; i < n; i++) {
		unsigned int nops = obj_operands(o, &m[i], ops, 12);

		assert_in_range(nops, 1, 3);
		for (unsigned int k = 0; k < nops; k++)
			assert_null(ops[k].why);
	}
	obj_close(o);
}

static void pythons(void **state)
{
	const char *root = getenv("DTAP_PYTHONS");
	struct strbuf pattern = { 0 };
	glob_t g = { 0 };
	size_t n = 0;

	(void)state;
	strbuf_printf(&pattern, "%s/*/usr/bin/python3.*[0-9]", root ? root : "/var/cache/dtap/pythons");
	glob("/usr/bin/python3.*[0-9]", 0, NULL, &g);
	glob(strbuf_str(&pattern), GLOB_APPEND, NULL, &g);
	strbuf_fini(&pattern);
	for (size_t i = 0; i < g.gl_pathc; i++) {
		assert_true(compare(g.gl_pathv[i]) >= 5);
		operands_of(g.gl_pathv[i]);
		n++;
	}
	globfree(&g);
	if (!n)
		skip();
}

static void libraries(void **state)
{
	static const char *const paths[] = {
		"/lib/x86_64-linux-gnu/libc.so.6", "/lib/x86_64-linux-gnu/libstdc++.so.6",
		"/lib64/ld-linux-x86-64.so.2", "/lib/x86_64-linux-gnu/libm.so.6",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
		FILE *f = fopen(paths[i], "r");

		if (!f)
			continue;
		fclose(f);
		compare(paths[i]);
	}
}

static void own(void **state)
{
	(void)state;
#ifdef MARKED
	assert_int_equal(compare(MARKED), 4);
#else
	skip();
#endif
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(pythons),
		cmocka_unit_test(libraries),
		cmocka_unit_test(own),
	};

	if (system("readelf --version >/dev/null 2>&1")) {
		fputs("readelf is not installed\n", stderr);
		return 77;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
