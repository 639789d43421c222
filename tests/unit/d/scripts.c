#include "scripts.h"

#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/arena.h"
#include "lang/diag.h"
#include "lang/source.h"

struct scripts {
	const char *folder;
	void (*stage)(struct arena *a, const struct source *src, struct diag *diag);
};

/* The @k-th tag that line @line of @src wants, from 0 on: copied to @tag.  False: it wants fewer. */
static bool wanted(const struct source *src, unsigned int line, unsigned int k, char tag[64])
{
	static const char mark[] = "/* error: ";
	size_t len;
	const char *s = source_line(src, line, &len), *end = s + len, *at;

	do {
		at = s < end ? memmem(s, (size_t)(end - s), mark, sizeof(mark) - 1) : NULL;
		s = at ? at + sizeof(mark) - 1 : NULL;
	} while (s && k--);
	return s && sscanf(s, "%63s", tag) == 1;
}

static bool is_wanted(const struct source *src, unsigned int line, const char *what)
{
	char tag[64];

	for (unsigned int k = 0; wanted(src, line, k, tag); k++)
		if (strcmp(tag, what) == 0)
			return true;
	return false;
}

static bool reported(const struct diag *d, unsigned int line, const char *tag)
{
	for (size_t i = 0; i < d->n; i++)
		if (d->msgs[i].level == DIAG_ERROR && d->msgs[i].pos.line == line && strcmp(d->msgs[i].tag, tag) == 0)
			return true;
	return false;
}

/* How many of its lines have another verdict than they want. */
static unsigned int run_script(const struct scripts *t, const char *path, const char *name)
{
	struct arena *a = arena_new();
	unsigned int bad = 0, lines = 1;
	struct source *src;
	struct diag diag;
	char tag[64];

	assert_int_equal(source_read(a, path, &src), 0);
	diag_init(&diag, a);
	t->stage(a, src, &diag);
	for (size_t i = 0; i < src->len; i++)
		lines += src->text[i] == '\n';
	for (unsigned int line = 1; line <= lines; line++) {
		for (unsigned int k = 0; wanted(src, line, k, tag); k++) {
			if (reported(&diag, line, tag))
				continue;
			print_error("%s:%u: no %s\n", name, line, tag);
			bad++;
		}
	}
	for (size_t i = 0; i < diag.n; i++) {
		const struct diag_msg *m = &diag.msgs[i];

		if (is_wanted(src, m->pos.line, m->tag))
			continue;
		print_error("%s:%u:%u: unexpected %s: %s\n", name, m->pos.line, m->pos.col, m->tag, m->text);
		bad++;
	}
	arena_free(a);
	return bad;
}

static void run_folder(void **state)
{
	const struct scripts *t = *state;
	DIR *dir = opendir(t->folder);
	unsigned int bad = 0, n = 0;
	struct dirent *e;
	char path[4096];

	assert_non_null(dir);
	while ((e = readdir(dir))) {
		size_t len = strlen(e->d_name);

		if (len < 3 || strcmp(e->d_name + len - 2, ".d") != 0)
			continue;
		snprintf(path, sizeof(path), "%s/%s", t->folder, e->d_name);
		bad += run_script(t, path, e->d_name);
		n++;
	}
	closedir(dir);
	assert_int_not_equal(n, 0);
	assert_int_equal(bad, 0);
}

int scripts_main(int argc, char **argv, void (*stage)(struct arena *a, const struct source *src, struct diag *diag))
{
	struct scripts t = { argc == 2 ? argv[1] : NULL, stage };
	const struct CMUnitTest tests[] = { cmocka_unit_test_prestate(run_folder, &t) };

	if (argc != 2)
		return 2;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
