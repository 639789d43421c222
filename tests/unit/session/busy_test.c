#include "session/busy.h"

#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/now.h"
#include "target/target.h"

static void waits_longer_and_longer(void **state)
{
	static const unsigned int want[] = { 250, 500, 1000, 2000, 4000, 8000, 8000, 8000 };

	(void)state;
	for (unsigned int k = 0; k < sizeof(want) / sizeof(*want); k++)
		assert_int_equal(busy_wait_ms(k), want[k]);
	assert_int_equal(busy_wait_ms(UINT32_MAX), 8000);
}

struct tries {
	unsigned int n, enough;
	pid_t seen[64];
};

static bool count(void *ctx, struct target *t)
{
	struct tries *tries = ctx;

	tries->seen[tries->n % 64] = target_pid(t);
	return ++tries->n == tries->enough;
}

static struct target *child(pid_t *pid)
{
	struct target *t;

	*pid = fork();
	if (!*pid) {
		pause();
		_exit(0);
	}
	assert_int_equal(target_attach(*pid, &t, NULL), 0);
	return t;
}

static void turn(struct busy *b)
{
	struct pollfd p = { .fd = busy_fd(b), .events = POLLIN };

	assert_int_equal(poll(&p, 1, 20000), 1);
	busy_turn(b);
}

static void tries_until_it_is_done(void **state)
{
	struct tries tries = { .enough = 2 };
	struct pollfd p = { .events = POLLIN };
	uint64_t begin = now_ms();
	struct busy *b;
	pid_t pid;

	(void)state;
	assert_int_equal(busy_new(count, &tries, &b), 0);
	assert_int_equal(busy_add(b, child(&pid)), 0);
	while (tries.n < tries.enough)
		turn(b);
	assert_true(now_ms() - begin >= 250 + 500 - 2);
	p.fd = busy_fd(b);
	assert_int_equal(poll(&p, 1, 300), 0);
	busy_free(b);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

static bool has_seen(const struct tries *tries, pid_t pid)
{
	for (unsigned int k = 0; k < tries->n && k < 64; k++)
		if (tries->seen[k] == pid)
			return true;
	return false;
}

/* Each of many has its try before somebody has a second one, and nobody who has ended. */
static void tries_each(void **state)
{
	enum { N = 11, ENDED = 4 };
	struct tries tries = { .enough = UINT32_MAX };
	struct busy *b;
	pid_t pids[N];

	(void)state;
	assert_int_equal(busy_new(count, &tries, &b), 0);
	for (int k = 0; k < N; k++)
		assert_int_equal(busy_add(b, child(&pids[k])), 0);
	for (int k = 0; k < ENDED; k++) {
		kill(pids[k], SIGKILL);
		assert_int_equal(waitpid(pids[k], NULL, 0), pids[k]);
	}
	while (tries.n < N - ENDED)
		turn(b);
	busy_free(b);
	for (int k = 0; k < N; k++)
		assert_int_equal(has_seen(&tries, pids[k]), k >= ENDED);
	for (int k = ENDED; k < N; k++) {
		kill(pids[k], SIGKILL);
		waitpid(pids[k], NULL, 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(waits_longer_and_longer),
		cmocka_unit_test(tries_until_it_is_done),
		cmocka_unit_test(tries_each),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
