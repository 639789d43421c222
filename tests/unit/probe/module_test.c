/*
 * Files that come and go: of those that nobody uses few are remembered, and those whose texts are used stay.
 */
#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/file.h"
#include "base/strbuf.h"
#include "probe/module.h"
#include "probe/provider.h"
#include "probe/python.h"

static unsigned int descriptors(void)
{
	DIR *d = opendir("/proc/self/fd");
	unsigned int n = 0;

	assert_non_null(d);
	while (readdir(d))
		n++;
	closedir(d);
	return n;
}

static void read_program(const char *path, struct strbuf *out)
{
	struct file *f;

	assert_int_equal(file_open(path, &f, NULL), 0);
	assert_int_equal(file_text(f, 16 << 20, out), 0);
	file_close(f);
}

/* A new file with that content, mapped for reading: nobody executes it yet. */
static void *map_new(const struct strbuf *content)
{
	int fd = memfd_create("some.so", MFD_CLOEXEC);
	void *at;

	assert_int_equal(write(fd, content->s, content->len), content->len);
	at = mmap(NULL, content->len, PROT_READ, MAP_PRIVATE, fd, 0);
	assert_ptr_not_equal(at, MAP_FAILED);
	close(fd);
	return at;
}

static void look(struct probe_set *set)
{
	struct python_process p = { 0 };

	assert_int_equal(python_look(&p, set, (uint32_t)getpid()), 0);
	python_done(&p, set);
}

enum { FILES = 3000 };

/* Each turn has a file of its own, as another container has.  They are made before: one that was just written is waited for. */
static void come_and_go(struct probe_set *set, const struct strbuf *content, unsigned int turns)
{
	static void *at[FILES];

	for (unsigned int i = 0; i < turns; i++)
		at[i] = map_new(content);
	for (unsigned int i = 0; i < turns; i++) {
		mprotect(at[i], content->len, PROT_READ | PROT_EXEC);
		look(set);
		munmap(at[i], content->len);
	}
}

static void bounded(const struct strbuf *content, unsigned int few, unsigned int many)
{
	struct probe_set *set = probe_set_new();
	unsigned int open;
	size_t n;

	look(set);
	come_and_go(set, content, few);
	n = modules_count(set_modules(set));
	open = descriptors();
	come_and_go(set, content, many);
	assert_int_equal(modules_count(set_modules(set)), n);
	assert_int_equal(descriptors(), open);
	probe_set_free(set);
}

static void without_markers(void **state)
{
	struct strbuf content = { 0 };

	(void)state;
	strbuf_puts(&content, "is no ELF file");
	bounded(&content, 2100, 500);
	strbuf_fini(&content);
}

static void with_markers(void **state)
{
#ifdef MARKED
	struct strbuf content = { 0 };

	(void)state;
	read_program(MARKED, &content);
	bounded(&content, 40, 100);
	strbuf_fini(&content);
#else
	(void)state;
	skip();
#endif
}

#ifdef MARKED
/* A probe has the texts of its file, which are not forgotten, whatever comes after it. */
static void kept(void **state)
{
	static const struct probe_desc one = { .prov = "mark*", .mod = "", .func = "", .name = "" };
	struct probe_set *set = probe_set_new();
	struct probe_list found = { 0 };
	struct strbuf content = { 0 };
	void *at;

	(void)state;
	read_program(MARKED, &content);
	at = map_new(&content);
	mprotect(at, content.len, PROT_READ | PROT_EXEC);
	assert_true(probe_find(set, &one, PROBE_ENABLE, &found) > 0);
	munmap(at, content.len);
	come_and_go(set, &content, 100);
	for (size_t i = 0; i < found.n; i++) {
		const struct probe *p = found.probes[i];

		assert_non_null(p->sites[0]->args_text);
		for (unsigned int k = 0; k < p->sig.nargs; k++)
			assert_true(!p->sig.args[k].type || strlen(p->sig.args[k].type));
		assert_int_equal(file_check(p->sites[0]->file), 0);
	}
	probe_set_free(set);
	strbuf_fini(&content);
}
#else
static void kept(void **state)
{
	(void)state;
	skip();
}
#endif

/* A user holds a module against any number of others. */
static void used(void **state)
{
	struct probe_set *set = probe_set_new();
	struct python_process p = { 0 };
	struct strbuf content = { 0 };
	size_t n;

	(void)state;
	strbuf_puts(&content, "is no ELF file");
	assert_int_equal(python_look(&p, set, (uint32_t)getpid()), 0);
	n = p.nmodules;
	come_and_go(set, &content, 2100);
	assert_int_equal(p.nmodules, n);
	for (size_t i = 0; i < n; i++)
		assert_true(*p.modules[i]->name);
	python_done(&p, set);
	probe_set_free(set);
	strbuf_fini(&content);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(without_markers), cmocka_unit_test(with_markers), cmocka_unit_test(kept), cmocka_unit_test(used),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
