/* out/sink.c: nothing lost silently. */
#include "out_test.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static void in_memory(void **state)
{
	struct out_sink s;

	(void)state;
	out_open_mem(&s);
	assert_string_equal(out_text(&s), "");
	out_puts(&s, "one ");
	out_putc(&s, '2');
	out_pad(&s, '.', 3);
	out_format(&s, " %d", 42);
	assert_string_equal(out_text(&s), "one 2... 42");
	out_reset(&s);
	out_pad(&s, 'x', 100000);
	assert_int_equal(strlen(out_text(&s)), 100000);
	assert_int_equal(out_close(&s), 0);
}

/* A file is appended to, as dtrace -o does. */
static void in_file(void **state)
{
	char path[] = "/tmp/out_sink_XXXXXX", buf[16] = "";
	int fd = mkstemp(path);
	struct out_sink s;

	(void)state;
	assert_true(fd >= 0);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(out_open_file(&s, path), 0);
		out_puts(&s, "line\n");
		assert_int_equal(out_close(&s), 0);
	}
	assert_int_equal(read(fd, buf, sizeof(buf)), 10);
	assert_string_equal(buf, "line\nline\n");
	close(fd);
	unlink(path);
	assert_int_equal(out_open_file(&s, "/nonexistent/dir/file"), -ENOENT);
}

static void disk_full(void **state)
{
	struct out_sink s;

	(void)state;
	assert_int_equal(out_open_file(&s, "/dev/full"), 0);
	out_puts(&s, "lost");
	assert_int_equal(out_flush(&s), -ENOSPC);
	assert_int_equal(s.lost, 4);
	out_puts(&s, "too");
	out_pad(&s, ' ', 200000);
	assert_int_equal(out_close(&s), -ENOSPC);
	assert_int_equal(s.lost, 200007);
}

static void reader_gone(void **state)
{
	struct out_sink s;
	int fds[2];

	(void)state;
	signal(SIGPIPE, SIG_IGN);
	assert_int_equal(pipe(fds), 0);
	close(fds[0]);
	assert_int_equal(out_open_fd(&s, fds[1]), 0);
	out_puts(&s, "anybody?");
	assert_int_equal(out_flush(&s), -EPIPE);
	assert_int_equal(out_close(&s), -EPIPE);
	close(fds[1]);
}

enum { TEXT = 1 << 20 };

static void *read_slowly(void *arg)
{
	int fd = *(int *)arg;
	char buf[4096];
	size_t total = 0;
	ssize_t n;

	usleep(20000);
	while ((n = read(fd, buf, sizeof(buf))) > 0)
		total += (size_t)n;
	return (void *)total;
}

/* A full pipe that would block is waited for. */
static void slow_reader(void **state)
{
	struct out_sink s;
	pthread_t thread;
	void *total;
	int fds[2];

	(void)state;
	assert_int_equal(pipe2(fds, O_NONBLOCK), 0);
	fcntl(fds[0], F_SETFL, 0);
	assert_int_equal(pthread_create(&thread, NULL, read_slowly, &fds[0]), 0);
	assert_int_equal(out_open_fd(&s, fds[1]), 0);
	for (int i = 0; i < TEXT / 16; i++)
		out_puts(&s, "sixteen bytes..\n");
	assert_int_equal(out_close(&s), 0);
	close(fds[1]);
	pthread_join(thread, &total);
	assert_int_equal((size_t)total, TEXT);
	close(fds[0]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(in_memory),   cmocka_unit_test(in_file),     cmocka_unit_test(disk_full),
		cmocka_unit_test(reader_gone), cmocka_unit_test(slow_reader),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
