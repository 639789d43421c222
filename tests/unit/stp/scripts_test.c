/*
 * The verdict on each script of a folder (second argument) after the stage "parse" or "check" (first
 * argument): an error on each line that carries a comment "error: TAG", with that tag, and no others.
 * A mistake that is about no place is expected on the first line.
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
#include "lang/diag.h"
#include "lib/stp_env.h"
#include "stp/stp.h"

static const char *stage, *folder;

/* The tag that line @line of @src wants: copied to @tag.  False: none. */
static bool wanted(const struct source *src, unsigned int line, char tag[64])
{
	static const char mark[] = "/* error: ";
	size_t len;
	const char *s = source_line(src, line, &len);
	const char *at = len ? memmem(s, len, mark, sizeof(mark) - 1) : NULL;

	return at && sscanf(at + sizeof(mark) - 1, "%63s", tag) == 1;
}

static unsigned int line_of(const struct diag_msg *m)
{
	return m->pos.line ? m->pos.line : 1;
}

static bool reported(const struct diag *d, unsigned int line, const char *tag)
{
	for (size_t i = 0; i < d->n; i++)
		if (d->msgs[i].level == DIAG_ERROR && line_of(&d->msgs[i]) == line && !strcmp(d->msgs[i].tag, tag))
			return true;
	return false;
}

static unsigned int compare(const struct source *src, const struct diag *d, const char *name)
{
	unsigned int bad = 0, lines = 0;
	char tag[64];

	for (size_t i = 0; i < src->len; i++)
		lines += src->text[i] == '\n';
	for (unsigned int line = 1; line <= lines; line++) {
		if (!wanted(src, line, tag) || reported(d, line, tag))
			continue;
		print_error("%s:%u: no %s\n", name, line, tag);
		bad++;
	}
	for (size_t i = 0; i < d->n; i++) {
		const struct diag_msg *m = &d->msgs[i];

		if (m->level != DIAG_ERROR || wanted(src, line_of(m), tag))
			continue;
		print_error("%s:%u: unexpected %s: %s\n", name, m->pos.line, m->tag, m->text);
		bad++;
	}
	return bad;
}

static unsigned int judge(const char *path, const char *name)
{
	struct arena *a = arena_new();
	struct stp_prog *prog = NULL;
	struct source *src;
	struct stp_env env;
	struct diag d;
	struct stp *stp;
	unsigned int bad;

	diag_init(&d, a);
	stp_env_init(&env, a);
	assert_int_equal(source_read(a, path, &src), 0);
	stp = stp_new(a, &d, &env);
	if (stp_add(stp, src, false) && !strcmp(stage, "check"))
		prog = stp_check(stp, NULL);
	bad = compare(src, &d, name);
	if (!strcmp(stage, "check") && !d.errors && !prog) {
		print_error("%s: no program and no error\n", name);
		bad++;
	}
	arena_free(a);
	return bad;
}

static void scripts(void **state)
{
	unsigned int bad = 0, n = 0;
	struct dirent *e;
	char path[4096];
	DIR *dir = opendir(folder);

	(void)state;
	assert_non_null(dir);
	while ((e = readdir(dir))) {
		size_t len = strlen(e->d_name);

		if (len < 4 || strcmp(e->d_name + len - 4, ".stp"))
			continue;
		snprintf(path, sizeof(path), "%s/%s", folder, e->d_name);
		bad += judge(path, e->d_name);
		n++;
	}
	closedir(dir);
	assert_true(n > 0);
	assert_int_equal(bad, 0);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(scripts) };

	stage = argc > 1 ? argv[1] : "parse";
	folder = argc > 2 ? argv[2] : ".";
	return cmocka_run_group_tests(tests, NULL, NULL);
}
