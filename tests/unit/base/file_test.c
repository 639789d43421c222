/*
 * Files of which nothing is known: what is opened, what is refused, and what is noticed of a file that is open.
 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/file.h"
#include "base/strbuf.h"

static char dir[64];

static const char *in_dir(const char *name)
{
	static char path[4][160];
	static unsigned int i;

	snprintf(path[++i % 4], sizeof(path[0]), "%s/%s", dir, name);
	return path[i % 4];
}

static void put(const char *path, const char *text)
{
	FILE *f = fopen(path, "w");

	assert_non_null(f);
	fputs(text, f);
	fclose(f);
}

static int set_up(void **state)
{
	(void)state;
	strcpy(dir, "/tmp/dtap-file-XXXXXX");
	return mkdtemp(dir) ? 0 : -1;
}

static int tear_down(void **state)
{
	char cmd[96];

	(void)state;
	snprintf(cmd, sizeof(cmd), "rm -rf %s", dir);
	return system(cmd);
}

/* Nothing waits and nothing acts: who opened the FIFO for writing would find a reader. */
static void other_kinds(void **state)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	static const char *const kinds[][2] = {
		{ "fifo", "a FIFO" }, { "socket", "a socket" }, { "folder", "a folder" }, { "/dev/zero", "a device" },
		{ "/dev/tty", "a device" }, { "/proc/self/mem", "one of the kernel's own" },
		{ "/proc/kmsg", "one of the kernel's own" }, { "/sys/kernel/profiling", "one of the kernel's own" },
	};
	int s = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct strbuf why = { 0 }, want = { 0 };
	struct file *f;

	(void)state;
	assert_int_equal(mkfifo(in_dir("fifo"), 0600), 0);
	assert_int_equal(mkdir(in_dir("folder"), 0700), 0);
	snprintf(addr.sun_path, sizeof(addr.sun_path), "%s", in_dir("socket"));
	assert_int_equal(bind(s, (struct sockaddr *)&addr, sizeof(addr)), 0);
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		const char *path = kinds[i][0][0] == '/' ? kinds[i][0] : in_dir(kinds[i][0]);

		if (access(path, F_OK))
			continue;
		strbuf_clear(&why);
		strbuf_clear(&want);
		strbuf_printf(&want, "%s: not a regular file, but %s", path, kinds[i][1]);
		assert_int_equal(file_open(path, &f, &why), -ENOTSUP);
		assert_string_equal(strbuf_str(&why), strbuf_str(&want));
		assert_int_equal(symlink(path, in_dir("link")), 0);
		assert_int_equal(file_open(in_dir("link"), &f, NULL), -ENOTSUP);
		unlink(in_dir("link"));
	}
	assert_int_equal(open(in_dir("fifo"), O_WRONLY | O_NONBLOCK), -1);
	assert_int_equal(errno, ENXIO);
	assert_int_equal(file_open(in_dir("nothing"), &f, NULL), -ENOENT);
	close(s);
	strbuf_fini(&why);
	strbuf_fini(&want);
}

/* Who holds a lease on the file is not waited for (F_SETLEASE: up to 45 s). */
static void lease(void **state)
{
	int fd;
	struct file *f;

	(void)state;
	put(in_dir("leased"), "text");
	fd = open(in_dir("leased"), O_RDWR | O_CLOEXEC);
	assert_true(fd >= 0);
	if (fcntl(fd, F_SETLEASE, F_WRLCK)) {
		close(fd);
		skip();
	}
	signal(SIGIO, SIG_IGN);
	assert_int_equal(file_open(in_dir("leased"), &f, NULL), -EWOULDBLOCK);
	fcntl(fd, F_SETLEASE, F_UNLCK);
	close(fd);
	assert_int_equal(file_open(in_dir("leased"), &f, NULL), 0);
	file_close(f);
}

static void holds_what_it_opened(void **state)
{
	struct strbuf text = { 0 };
	char link[FILE_LINK_MAX];
	struct file *f, *other;

	(void)state;
	put(in_dir("a"), "first");
	put(in_dir("b"), "other");
	assert_int_equal(file_open(in_dir("a"), &f, NULL), 0);
	assert_string_equal(f->path, in_dir("a"));
	assert_true(fcntl(f->fd, F_GETFD) & FD_CLOEXEC);
	unlink(in_dir("a"));
	assert_int_equal(symlink("b", in_dir("a")), 0);
	assert_int_equal(file_check(f), 0);
	assert_int_equal(file_text(f, 100, &text), 0);
	assert_string_equal(strbuf_str(&text), "first");
	strbuf_clear(&text);
	assert_int_equal(file_open_link(file_link(f, link), "a", &other, NULL), 0);
	assert_true(file_same(f, other));
	file_close(other);
	assert_int_equal(file_open(in_dir("a"), &other, NULL), 0);
	assert_false(file_same(f, other));
	assert_int_equal(file_text(other, 4, &text), -EFBIG);
	file_close(file_use(other));
	assert_int_equal(file_text(other, 5, &text), 0);
	assert_string_equal(strbuf_str(&text), "other");
	file_close(other);
	file_close(f);
	file_close(NULL);
	strbuf_fini(&text);
}

static void rewrite(const char *path, off_t at, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(pwrite(fd, text, strlen(text), at), strlen(text));
	close(fd);
}

/* At once after it was opened, and after it was made: within one tick of the clock that the times come from. */
static void notices_rewriting(void **state)
{
	struct timespec times[2];
	struct file *f;

	(void)state;
	for (int i = 0; i < 20; i++) {
		put(in_dir("c"), "some text");
		assert_int_equal(file_open(in_dir("c"), &f, NULL), 0);
		assert_int_equal(file_check(f), 0);
		rewrite(in_dir("c"), 5, "TEXT");
		assert_int_equal(file_check(f), -ESTALE);
		file_close(f);
	}
	/* Other names and rights do not make it another file. */
	assert_int_equal(file_open(in_dir("c"), &f, NULL), 0);
	assert_int_equal(link(in_dir("c"), in_dir("d")), 0);
	assert_int_equal(file_check(f), 0);
	assert_int_equal(rename(in_dir("c"), in_dir("e")), 0);
	assert_int_equal(chmod(in_dir("e"), 0700), 0);
	unlink(in_dir("d"));
	assert_int_equal(file_check(f), 0);
	unlink(in_dir("e"));
	assert_int_equal(file_check(f), 0);
	file_close(f);
	/* As rsync --inplace --times leaves it: the same size, the same time. */
	put(in_dir("c"), "some text");
	assert_int_equal(file_open(in_dir("c"), &f, NULL), 0);
	rewrite(in_dir("c"), 5, "TEXT");
	times[0] = f->st.st_atim;
	times[1] = f->st.st_mtim;
	assert_int_equal(utimensat(AT_FDCWD, in_dir("c"), times, 0), 0);
	assert_int_equal(file_check(f), -ESTALE);
	file_close(f);
}

/* In another root absolute links are that root's, and none leads out of it. */
static void roots(void **state)
{
	struct strbuf text = { 0 };
	struct file *f;

	(void)state;
	assert_int_equal(mkdir(in_dir("root"), 0700), 0);
	put(in_dir("root/passwd"), "inner");
	assert_int_equal(symlink("/passwd", in_dir("root/absolute")), 0);
	assert_int_equal(symlink("../../../../passwd", in_dir("root/up")), 0);
	assert_int_equal(symlink("/etc/passwd", in_dir("root/out")), 0);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(file_open_in(in_dir("root"), i ? "/up" : "/absolute", &f, NULL), 0);
		strbuf_clear(&text);
		assert_int_equal(file_text(f, 100, &text), 0);
		assert_string_equal(strbuf_str(&text), "inner");
		file_close(f);
	}
	assert_int_equal(file_open_in(in_dir("root"), "/out", &f, NULL), -ENOENT);
	assert_int_equal(file_open_in(in_dir("none"), "/out", &f, NULL), -ENOENT);
	strbuf_fini(&text);
}

/* With no descriptor left there are more; a program that is started has as many as before. */
static void descriptors(void **state)
{
	int status = 0;
	pid_t pid;

	(void)state;
	put(in_dir("many"), "text");
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		struct rlimit few = { 64, 0 }, is;
		struct file *f[100];

		getrlimit(RLIMIT_NOFILE, &is);
		few.rlim_max = is.rlim_max;
		setrlimit(RLIMIT_NOFILE, &few);
		for (int i = 0; i < 100; i++)
			if (file_open(in_dir("many"), &f[i], NULL))
				_exit(1);
		getrlimit(RLIMIT_NOFILE, &is);
		if (is.rlim_cur <= 64)
			_exit(2);
		file_descriptors_restore();
		getrlimit(RLIMIT_NOFILE, &is);
		if (is.rlim_cur != 64)
			_exit(3);
		file_descriptors_again();
		getrlimit(RLIMIT_NOFILE, &is);
		_exit(is.rlim_cur > 64 ? 0 : 4);
	}
	waitpid(pid, &status, 0);
	assert_int_equal(status, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(other_kinds),
		cmocka_unit_test(lease),
		cmocka_unit_test(holds_what_it_opened),
		cmocka_unit_test(notices_rewriting),
		cmocka_unit_test(roots),
		cmocka_unit_test(descriptors),
	};
	return cmocka_run_group_tests(tests, set_up, tear_down);
}
