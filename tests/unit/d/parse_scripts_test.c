/*
 * The parser's verdict on each script of a folder (the first argument): an error on each line that carries
 * a comment "error: TAG", with that tag, and no others.
 */
#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/arena.h"
#include "base/strbuf.h"
#include "d/parse.h"
#include "lang/diag.h"
#include "lang/source.h"

static const char *folder;

/* The tag that line @line of @src wants: copied to @tag.  False: none. */
static bool wanted(const struct source *src, unsigned int line, char tag[64])
{
	static const char mark[] = "/* error: ";
	size_t len;
	const char *s = source_line(src, line, &len);
	const char *at = len ? memmem(s, len, mark, sizeof(mark) - 1) : NULL;

	return at && sscanf(at + sizeof(mark) - 1, "%63s", tag) == 1;
}

static bool reported(const struct diag *d, unsigned int line, const char *tag)
{
	for (size_t i = 0; i < d->n; i++)
		if (d->msgs[i].level == DIAG_ERROR && d->msgs[i].pos.line == line && !strcmp(d->msgs[i].tag, tag))
			return true;
	return false;
}

static unsigned int check_script(const char *path, const char *name)
{
	struct arena *a = arena_new();
	unsigned int bad = 0, lines = 1;
	struct strbuf text = { 0 };
	struct d_macros macros;
	struct source *src;
	struct d_prog *prog;
	struct diag diag;
	char tag[64];
	bool ok;

	assert_int_equal(source_read(a, path, &src), 0);
	d_macros_init(&macros);
	diag_init(&diag, a);
	prog = d_prog_new(a, &diag, &macros);
	ok = d_parse(prog, src, D_SPEC_FILE);
	assert_int_equal(ok, !diag.errors);
	if (!diag.errors)
		d_dump(&text, prog);
	for (size_t i = 0; i < src->len; i++)
		lines += src->text[i] == '\n';
	for (unsigned int line = 1; line <= lines; line++) {
		if (wanted(src, line, tag) && !reported(&diag, line, tag)) {
			print_error("%s:%u: no %s\n", name, line, tag);
			bad++;
		}
	}
	for (size_t i = 0; i < diag.n; i++) {
		const struct diag_msg *m = &diag.msgs[i];

		if (wanted(src, m->pos.line, tag) && !strcmp(tag, m->tag))
			continue;
		print_error("%s:%u:%u: unexpected %s: %s\n", name, m->pos.line, m->pos.col, m->tag, m->text);
		bad++;
	}
	strbuf_fini(&text);
	arena_free(a);
	return bad;
}

static void check_folder(void **state)
{
	DIR *dir = opendir(folder);
	unsigned int bad = 0, n = 0;
	struct dirent *e;
	char path[4096];

	(void)state;
	assert_non_null(dir);
	while ((e = readdir(dir))) {
		size_t len = strlen(e->d_name);

		if (len < 3 || strcmp(e->d_name + len - 2, ".d") != 0)
			continue;
		snprintf(path, sizeof(path), "%s/%s", folder, e->d_name);
		bad += check_script(path, e->d_name);
		n++;
	}
	closedir(dir);
	assert_int_not_equal(n, 0);
	assert_int_equal(bad, 0);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(check_folder) };

	if (argc != 2)
		return 2;
	folder = argv[1];
	return cmocka_run_group_tests(tests, NULL, NULL);
}
