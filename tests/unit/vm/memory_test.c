/* Memory that programs name: what is read is what is there, and nothing that they name is followed by a load. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "segment.h"
#include "vm/memory.h"

enum { PAGE = 4096, ERRNO = 97 };

struct fixture {
	struct segment seg;
	struct shm shm;
	struct shm_run run;
	uint64_t strings[3];
	char *page;		/* its end is the end of what can be read */
	char buf[2 * PAGE];
};

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	segment_begin(&f->seg, &f->shm, &f->run);
	f->page = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(f->page, MAP_FAILED);
	assert_int_equal(mprotect(f->page + PAGE, PAGE, PROT_NONE), 0);
	memset(f->page, 'x', PAGE);
	f->run.strings = f->strings;
	f->run.nstrings = 3;
	*state = f;
	errno = ERRNO;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(errno, ERRNO);
	munmap(f->page, 2 * PAGE);
	segment_end(&f->seg, &f->shm, &f->run);
	free(f);
	return 0;
}

static uint64_t at(const void *p)
{
	return (uint64_t)(uintptr_t)p;
}

/* An argument that an event does not have is 0 in @strings, too. */
static void null_is_no_string(void **state)
{
	struct fixture *f = *state;

	assert_false(memory_is_known(&f->run, 0));
	assert_int_equal(memory_read_string(&f->run, f->buf, 16, 0), -EFAULT);
	assert_int_equal(memory_read(&f->run, f->buf, 1, 0), -EFAULT);
	assert_int_equal(memory_write(&f->run, 0, "x", 1), -EFAULT);
}

static void to_the_end_and_no_further(void **state)
{
	struct fixture *f = *state;
	char *end = f->page + PAGE;

	for (int n = 0; n < 40; n++) {
		end[-1] = '\0';		/* a write writes as far as it can */
		assert_int_equal(memory_read_string(&f->run, f->buf, 100, at(end - 1 - n)), n + 1);
		assert_int_equal(strlen(f->buf), n);
		assert_int_equal(memory_read(&f->run, f->buf, (uint64_t)n + 1, at(end - 1 - n)), 0);
		assert_int_equal(memory_read(&f->run, f->buf, (uint64_t)n + 2, at(end - 1 - n)), -EFAULT);
		assert_int_equal(f->buf[0], 0);
		assert_int_equal(memory_write(&f->run, at(end - 1 - n), f->page, (uint64_t)n + 2), -EFAULT);
	}
	end[-1] = 'x';
	assert_int_equal(memory_read_string(&f->run, f->buf, 20, at(end - 20)), 20);
	assert_int_equal(memory_read_string(&f->run, f->buf, 21, at(end - 20)), -EFAULT);
}

/* A key is compared whole, so nothing is left of what lies behind a string. */
static void only_the_string(void **state)
{
	struct fixture *f = *state;

	for (int n = 0; n < 40; n++) {
		memset(f->page, 'x', PAGE);
		f->page[n] = '\0';
		memset(f->buf, 0, sizeof(f->buf));
		assert_int_equal(memory_read_string(&f->run, f->buf, 64, at(f->page)), n + 1);
		for (int k = n; k < 64; k++)
			assert_int_equal(f->buf[k], 0);
	}
}

static void sizes_that_wrap(void **state)
{
	static const uint64_t addrs[] = { 1, 1ull << 47, 1ull << 63, -4096ull, -8ull, -1ull };
	struct fixture *f = *state;

	for (size_t k = 0; k < sizeof(addrs) / sizeof(*addrs); k++) {
		assert_int_equal(memory_read(&f->run, f->buf, 16, addrs[k]), -EFAULT);
		assert_int_equal(memory_read_string(&f->run, f->buf, sizeof(f->buf), addrs[k]), -EFAULT);
		assert_int_equal(memory_write(&f->run, addrs[k], f->buf, 16), -EFAULT);
	}
	/* What begins on the stack and ends behind it is like any memory. */
	memset(f->run.thread.stack, 'x', VM_STACK);
	assert_int_equal(memory_read_string(&f->run, f->buf, 9, at(f->run.thread.stack + VM_STACK - 8)), 9);
}

static void forbidden_is_a_fault(void **state)
{
	struct fixture *f = *state;

	memcpy(f->page, "known", 6);
	f->strings[1] = at(f->page);
	f->shm.no_memory = true;
	assert_int_equal(memory_read(&f->run, f->buf, 1, at(f->page)), -EFAULT);
	assert_int_equal(memory_write(&f->run, at(f->page), "y", 1), -EFAULT);
	assert_int_equal(memory_read_string(&f->run, f->buf, 8, at(f->page + 1)), -EFAULT);
	assert_int_equal(memory_read_string(&f->run, f->buf, 8, at(f->page)), 6);
	assert_string_equal(f->buf, "known");
	assert_int_equal(memory_read(&f->run, f->buf, 1, at(f->shm.data)), 0);
}

/* A child is itself, however it was forked: it reads its own memory, not its parent's. */
static void child_is_itself(void **state)
{
	struct fixture *f = *state;
	int status = -1;
	long pid;

	assert_int_equal(memory_read(&f->run, f->buf, 1, at(f->page)), 0);
	assert_true(memory_own(28) != 0);
	pid = syscall(SYS_clone, 17 /* SIGCHLD */, 0, 0, 0, 0);	/* the C library is not told */
	assert_true(pid >= 0);
	if (!pid) {
		f->page[0] = 'c';
		if (memory_read(&f->run, f->buf, 1, at(f->page)) || f->buf[0] != 'c')
			_exit(1);
		if (memory_write(&f->run, at(f->page), "d", 1) || f->page[0] != 'd')
			_exit(2);
		_exit(0);
	}
	assert_int_equal(waitpid((pid_t)pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_int_equal(f->page[0], 'x');
}

int main(void)
{
#define TEST(NAME) cmocka_unit_test_setup_teardown(NAME, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(null_is_no_string),    TEST(to_the_end_and_no_further), TEST(sizes_that_wrap), TEST(only_the_string),
		TEST(forbidden_is_a_fault), TEST(child_is_itself),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
