/* The kernel's log of what processes map: of a program that was executed, of a process that only forked, and of both together. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "probe/maplog.h"
#include "probe/procs.h"

static int setup(void **state)
{
	*state = maplog_open();
	return 0;
}

static int teardown(void **state)
{
	maplog_close(*state);
	return 0;
}

/* A process that has ended by the time that this returns. */
static uint32_t ended(bool executes)
{
	pid_t pid = fork();
	int status;

	if (!pid) {
		if (executes)
			execl("/bin/true", "true", NULL);
		_exit(executes);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	return (uint32_t)pid;
}

struct found {
	unsigned int n, programs;
};

static int count(void *ctx, const struct procs_map *m)
{
	struct found *f = ctx;

	assert_true(m->start < m->end && m->ino && m->path[0] == '/');
	f->n++;
	f->programs += strstr(m->path, "/true") != NULL;
	return 0;
}

static void a_program(void **state)
{
	struct maplog *l = *state;
	struct found f = { 0 };
	uint32_t pid;

	if (!l)
		skip();
	pid = ended(true);
	assert_int_equal(maplog_each(l, pid, count, &f), -ESRCH);	/* not read yet */
	maplog_read(l);
	assert_int_equal(maplog_each(l, pid, count, &f), 0);
	assert_true(f.programs == 1 && f.n >= 2);			/* and its dynamic loader at least */
	assert_int_equal(maplog_parent(l, pid), 0);
	assert_true(maplog_life(l, pid));
}

/* What its parent had mapped before the log began is the parent's; what it mapped since is the child's, too. */
static void a_fork(void **state)
{
	struct maplog *l = *state;
	struct found f = { 0 };
	uint32_t pid, next;
	FILE *self;
	void *at;

	if (!l)
		skip();
	self = fopen("/proc/self/exe", "re");
	assert_non_null(self);
	at = mmap(NULL, 1, PROT_READ | PROT_EXEC, MAP_PRIVATE, fileno(self), 0);
	assert_true(at != MAP_FAILED);
	pid = ended(false);
	next = ended(false);
	maplog_read(l);
	assert_int_equal(maplog_each(l, pid, count, &f), 0);
	assert_int_equal(f.n, 1);
	assert_int_equal(maplog_parent(l, pid), getpid());
	assert_int_not_equal(maplog_life(l, pid), maplog_life(l, next));
	assert_int_equal(maplog_life(l, (uint32_t)getpid()), 0);
	munmap(at, 1);
	fclose(self);
}

/* Processes that ended long ago are forgotten, whether they executed a program or not. */
static void many(void **state)
{
	enum { MANY = 1500 };
	struct maplog *l = *state;
	struct found f = { 0 };
	uint32_t first = 0, pid = 0;

	if (!l)
		skip();
	for (int k = 0; k < MANY; k++) {
		pid = ended(false);
		first = k ? first : pid;
		if (k % 100 == 0)
			maplog_read(l);
	}
	maplog_read(l);
	assert_int_equal(maplog_each(l, first, count, &f), -ESRCH);
	assert_int_equal(maplog_each(l, pid, count, &f), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_program, setup, teardown),
		cmocka_unit_test_setup_teardown(a_fork, setup, teardown),
		cmocka_unit_test_setup_teardown(many, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
