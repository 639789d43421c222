/*
 * Real processes, held and let go.  traced.c writes down how far it got.
 */
#include <dirent.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/file.h"
#include "base/strbuf.h"
#include "target/maps.h"
#include "target/target.h"

static char log_path[] = "/tmp/dtap-hold-XXXXXX";
static char log_text[64];

static int new_log(void **state)
{
	(void)state;
	unlink(log_path);
	return 0;
}

static const char *read_log(void)
{
	int fd = open(log_path, O_RDONLY);
	ssize_t n = fd < 0 ? 0 : read(fd, log_text, sizeof(log_text) - 1);

	log_text[n < 0 ? 0 : n] = '\0';
	close(fd);
	return log_text;
}

static struct target *create(const char *cmdline)
{
	struct strbuf why = { 0 };
	struct target *t = NULL;

	if (target_create(cmdline, NULL, &t, &why))
		fail_msg("%s: %s", cmdline, strbuf_str(&why));
	assert_int_equal(target_state(t), TARGET_AT_EXEC);
	return t;
}

static void refused(const char *cmdline, int err, const char *part)
{
	struct strbuf why = { 0 };
	struct target *t = NULL;

	assert_int_equal(target_create(cmdline, NULL, &t, &why), err);
	assert_null(t);
	if (!strstr(strbuf_str(&why), part))
		fail_msg("%s", strbuf_str(&why));
	strbuf_fini(&why);
}

/* What it runs now is the file @path. */
static void assert_runs(const struct target *t, const char *path)
{
	struct target_image i;
	struct stat st;

	assert_int_equal(target_image(t, &i, NULL), 0);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(i.ino, st.st_ino);
	assert_int_equal(i.dev, st.st_dev);
	assert_int_equal(fstat(i.file->fd, &st), 0);
	assert_int_equal(i.ino, st.st_ino);
	target_image_fini(&i);
}

/* Release, if it is held, and wait: the status that it ends with. */
static int finish(struct target *t)
{
	struct pollfd p = { .fd = target_fd(t), .events = POLLIN };
	int status = -1;

	assert_int_equal(target_release(t, NULL), 0);
	if (target_state(t) == TARGET_RUNNING) {
		assert_int_equal(poll(&p, 1, 10000), 1);
		assert_int_equal(target_poll(t), TARGET_EXITED);
	}
	assert_true(target_exit_status(t, &status));
	target_free(t);
	return status;
}

static bool is_alive(pid_t pid)
{
	char path[32], state = 'Z';
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	f = fopen(path, "r");
	if (!f)
		return false;
	if (fscanf(f, "%*d (%*[^)]) %c", &state) != 1)
		state = 'Z';
	fclose(f);
	return state != 'Z' && state != 'X';
}

static bool dies(pid_t pid)
{
	int i;

	for (i = 0; i < 500 && is_alive(pid); i++)
		usleep(10000);
	return !is_alive(pid);
}

static void nothing_runs_before_release(void **state)
{
	static const char *const programs[] = { TRACED_STATIC, TRACED_PIE, TRACED_FIXED };
	size_t i;

	(void)state;
	for (i = 0; i < 3; i++) {
		struct target *t = create(programs[i]);

		usleep(20000);
		assert_string_equal(read_log(), "");
		assert_runs(t, programs[i]);
		assert_int_equal(finish(t), 0);
		assert_string_equal(read_log(), "cm");
		unlink(log_path);
	}
}

static void stops_at_the_entry(void **state)
{
	static const char *const programs[] = { TRACED_STATIC, TRACED_PIE, TRACED_FIXED };
	size_t i, j;

	(void)state;
	for (i = 0; i < 3; i++) {
		struct target *t = create(programs[i]);
		struct target_maps m;
		bool libc = false;

		assert_int_equal(target_to_entry(t, NULL), 0);
		assert_int_equal(target_state(t), TARGET_AT_ENTRY);
		assert_string_equal(read_log(), "");
		assert_int_equal(target_maps(t, &m, NULL), 0);
		for (j = 0; j < m.n; j++)
			libc |= strstr(m.v[j].path, "/libc.so") || strstr(m.v[j].path, "/libc-");
		assert_int_equal(libc, i != 0);
		target_maps_fini(&m);
		assert_int_equal(target_to_entry(t, NULL), 0);	/* it is there */
		assert_int_equal(finish(t), 0);
		assert_string_equal(read_log(), "cm");
		unlink(log_path);
	}
}

static void threads_of_constructors(void **state)
{
	struct target *t = create(CTOR_MAIN);
	int status;

	(void)state;
	assert_int_equal(target_to_entry(t, NULL), 0);
	assert_int_equal(target_state(t), TARGET_AT_ENTRY);
	usleep(10000);
	status = finish(t);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 7);
	t = create(CTOR_MAIN);
	assert_int_equal(target_to_entry(t, NULL), 0);
	assert_int_equal(target_next_exec(t, NULL), 0);
	assert_int_equal(target_state(t), TARGET_EXITED);
	assert_int_equal(finish(t), 7 << 8);
	t = create(CTOR_MAIN);
	assert_int_equal(target_to_entry(t, NULL), 0);
	target_free(t);
}

static void follows_execs(void **state)
{
	struct target *t = create("env X=1 sh -c '/bin/true; exec \"$0\" exit 3' " TRACED_PIE);
	pid_t pid = target_pid(t);

	(void)state;
	assert_true(target_image_can_exec(t));
	assert_int_equal(target_next_exec(t, NULL), 0);
	assert_int_equal(target_state(t), TARGET_AT_EXEC);
	assert_runs(t, "/bin/sh");
	assert_int_equal(target_to_entry(t, NULL), 0);
	assert_int_equal(target_state(t), TARGET_AT_ENTRY);
	assert_int_equal(target_next_exec(t, NULL), 0);
	assert_runs(t, TRACED_PIE);
	assert_int_equal(target_pid(t), pid);
	assert_string_equal(read_log(), "");
	assert_false(target_image_can_exec(t));
	assert_int_equal(target_next_exec(t, NULL), 0);
	assert_int_equal(target_state(t), TARGET_EXITED);
	assert_int_equal(finish(t), 3 << 8);
	assert_string_equal(read_log(), "cm");
}

static void execs_by_other_threads(void **state)
{
	static const char *const how[] = { THREAD_EXEC " ", THREAD_EXEC " leave " };
	size_t i;

	(void)state;
	for (i = 0; i < 2; i++) {
		struct strbuf cmd = { 0 };
		struct target *t;
		pid_t pid;

		strbuf_printf(&cmd, "%s%s exit 5", how[i], TRACED_STATIC);
		t = create(cmd.s);
		pid = target_pid(t);
		assert_int_equal(target_next_exec(t, NULL), 0);
		assert_int_equal(target_state(t), TARGET_AT_EXEC);
		assert_runs(t, TRACED_STATIC);
		assert_int_equal(target_pid(t), pid);
		assert_string_equal(read_log(), "");
		assert_int_equal(finish(t), 5 << 8);
		assert_string_equal(read_log(), "cm");
		unlink(log_path);
		strbuf_fini(&cmd);
	}
}

static void statuses(void **state)
{
	(void)state;
	assert_int_equal(finish(create(TRACED_PIE " exit 42")), 42 << 8);
	assert_int_equal(WTERMSIG(finish(create(TRACED_PIE " kill 9"))), 9);
	assert_int_equal(WTERMSIG(finish(create(TRACED_PIE " kill 11"))), 11);
}

static void signals_start_as_default(void **state)
{
	sigset_t set, old;
	struct target *t;

	(void)state;
	sigfillset(&set);
	sigprocmask(SIG_BLOCK, &set, &old);
	signal(SIGPIPE, SIG_IGN);
	t = create(TRACED_PIE " signals");
	signal(SIGPIPE, SIG_DFL);
	sigprocmask(SIG_SETMASK, &old, NULL);
	assert_int_equal(finish(t), 0);
}

static void signals_are_passed_on(void **state)
{
	struct target *t = create(TRACED_PIE " usr1");

	(void)state;
	assert_int_equal(target_next_exec(t, NULL), 0);
	assert_int_equal(target_state(t), TARGET_EXITED);
	assert_int_equal(finish(t), 0);
	assert_string_equal(read_log(), "cmu");

	t = create(TRACED_PIE " wait");		/* of those that come while it is held, as well */
	kill(target_pid(t), SIGTERM);
	assert_int_equal(WTERMSIG(finish(t)), SIGTERM);
	t = create(TRACED_PIE " wait");
	kill(target_pid(t), SIGKILL);
	assert_int_equal(WTERMSIG(finish(t)), SIGKILL);
	t = create(TRACED_PIE " wait");
	kill(target_pid(t), SIGTERM);
	assert_int_equal(target_to_entry(t, NULL), 0);
	assert_int_equal(target_state(t), TARGET_EXITED);
	assert_int_equal(WTERMSIG(finish(t)), SIGTERM);
}

static void job_control(void **state)
{
	struct target *t = create("sh -c 'kill -STOP $$; exec \"$0\"' " TRACED_PIE);
	pid_t child, pid = target_pid(t);
	char path[32], c = '?';

	(void)state;
	child = fork();
	if (!child) {
		int i, seen = 0;

		snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
		for (i = 0; i < 500 && seen < 5; i++) {	/* stopped, and it stays so */
			FILE *f = fopen(path, "r");

			seen = f && fscanf(f, "%*d (sh) %c", &c) == 1 && (c == 't' || c == 'T') ? seen + 1 : 0;
			if (f)
				fclose(f);
			usleep(10000);
		}
		kill(pid, SIGCONT);
		_exit(seen < 5);
	}
	assert_int_equal(target_next_exec(t, NULL), 0);
	assert_runs(t, TRACED_PIE);
	assert_int_equal(finish(t), 0);
	waitpid(child, &pid, 0);
	assert_int_equal(pid, 0);
}

static void own_signals_end_the_wait(void **state)
{
	struct target *t = create("sleep 100");
	pid_t pid = target_pid(t);
	sigset_t set, old;
	int sig;

	(void)state;
	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigprocmask(SIG_BLOCK, &set, &old);
	raise(SIGTERM);
	assert_int_equal(target_next_exec(t, NULL), -EINTR);
	assert_int_equal(target_next_exec(t, NULL), -EINTR);
	sigwait(&set, &sig);
	assert_int_equal(sig, SIGTERM);
	sigprocmask(SIG_SETMASK, &old, NULL);
	assert_int_equal(target_release(t, NULL), -EBUSY);
	assert_true(is_alive(pid));
	target_free(t);
	assert_false(is_alive(pid));
}

static void commands_that_do_not_start(void **state)
{
	static const char script[] = "#!/no/such/interpreter -x\n", text[] = "hello\n";
	char path[] = "/tmp/dtap-script-XXXXXX";
	int fd = mkstemp(path);
	struct strbuf cmd = { 0 };

	(void)state;
	refused("", -EINVAL, "empty");
	refused("a 'b", -EINVAL, "open quote");
	refused("no-such-command-here x", -ENOENT, "'no-such-command-here' not found in PATH");
	refused("/no/such/file", -ENOENT, "/no/such/file: No such file");
	refused("/tmp", -EISDIR, "/tmp");
	assert_int_equal(write(fd, script, sizeof(script) - 1), sizeof(script) - 1);
	refused(path, -EACCES, "Permission denied");
	fchmod(fd, 0755);
	close(fd);
	refused(path, -ENOENT, "its interpreter /no/such/interpreter");
	fd = open(path, O_WRONLY | O_TRUNC);
	assert_int_equal(write(fd, text, sizeof(text) - 1), sizeof(text) - 1);
	close(fd);
	refused(path, -ENOEXEC, "begins with #!");
	unlink(path);
	strbuf_fini(&cmd);
}

/* A tracer in a process of its own: it starts "wait", releases it or not, and gets killed. */
static pid_t target_of_dead_tracer(bool release)
{
	int p[2];
	pid_t tracer, pid = 0;

	assert_int_equal(pipe(p), 0);
	tracer = fork();
	if (!tracer) {
		struct target *t = NULL;

		if (target_create(TRACED_PIE " wait", NULL, &t, NULL) || (release && target_release(t, NULL)))
			_exit(1);
		pid = target_pid(t);
		if (write(p[1], &pid, sizeof(pid)) != sizeof(pid))
			_exit(1);
		pause();
		_exit(1);
	}
	assert_int_equal(read(p[0], &pid, sizeof(pid)), sizeof(pid));
	close(p[0]);
	close(p[1]);
	kill(tracer, SIGKILL);
	waitpid(tracer, NULL, 0);
	return pid;
}

static void tracer_dies(void **state)
{
	pid_t pid;

	(void)state;
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	pid = target_of_dead_tracer(false);
	assert_true(dies(pid));
	waitpid(pid, NULL, 0);
	assert_string_equal(read_log(), "");

	pid = target_of_dead_tracer(true);
	for (int i = 0; i < 500 && strcmp(read_log(), "cm"); i++)
		usleep(10000);
	assert_true(is_alive(pid));
	assert_string_equal(read_log(), "cm");
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

static void free_kills_what_is_held_only(void **state)
{
	struct target *t = create(TRACED_PIE " wait");
	pid_t pid = target_pid(t);

	(void)state;
	target_free(t);
	assert_int_equal(kill(pid, 0), -1);
	t = create(TRACED_PIE " wait");
	pid = target_pid(t);
	assert_int_equal(target_release(t, NULL), 0);
	target_free(t);
	usleep(20000);
	assert_true(is_alive(pid));
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	target_free(NULL);
}

static void attaching(void **state)
{
	struct strbuf why = { 0 };
	struct pollfd p = { .events = POLLIN };
	struct target *t;
	int status;
	pid_t pid = fork();

	(void)state;
	if (!pid) {
		pause();
		_exit(0);
	}
	assert_int_equal(target_attach(pid, &t, NULL), 0);
	assert_int_equal(target_poll(t), TARGET_RUNNING);
	assert_int_equal(target_release(t, NULL), -EINVAL);
	assert_false(target_other_root(target_pid(t)));
	assert_runs(t, "/proc/self/exe");
	p.fd = target_fd(t);
	assert_int_equal(poll(&p, 1, 0), 0);
	kill(pid, SIGTERM);
	assert_int_equal(poll(&p, 1, 5000), 1);
	assert_int_equal(target_poll(t), TARGET_EXITED);
	assert_true(target_exit_status(t, &status) && WIFSIGNALED(status));
	assert_int_equal(WTERMSIG(status), SIGTERM);
	target_free(t);
	assert_int_equal(target_attach(pid, &t, &why), -ESRCH);	/* a zombie */
	assert_non_null(strstr(why.s, "has ended already"));
	waitpid(pid, NULL, 0);
	strbuf_clear(&why);
	assert_int_equal(target_attach(pid, &t, &why), -ESRCH);
	assert_non_null(strstr(why.s, "no such process"));
	assert_int_equal(target_attach(0, &t, NULL), -EINVAL);
	strbuf_fini(&why);
}

/* The thread of @pid that was started first after its own, once there is one: ctor_lib.c's idle one, which stays. */
static pid_t other_thread(pid_t pid)
{
	const struct dirent *e;
	pid_t tid = 0;
	char path[64];
	DIR *d;
	int i;

	snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
	for (i = 0; i < 1000 && !tid; i++) {
		usleep(10000);
		d = opendir(path);
		while (d && !tid && (e = readdir(d)))
			if (atoi(e->d_name) > 0 && atoi(e->d_name) != pid)
				tid = atoi(e->d_name);
		if (d)
			closedir(d);
	}
	return tid;
}

static void not_attaching(void **state)
{
	struct strbuf why = { 0 };
	struct target *t;
	char task[64];
	pid_t pid, tid;
	int status;

	(void)state;
	/* A thread's id: of a process that starts some and keeps them. */
	pid = fork();
	if (!pid) {
		execl(CTOR_WAIT, CTOR_WAIT, NULL);
		_exit(1);
	}
	tid = other_thread(pid);
	assert_true(tid);
	snprintf(task, sizeof(task), "is a thread of process %d", (int)pid);
	assert_int_equal(target_attach(tid, &t, &why), -EINVAL);
	assert_non_null(strstr(why.s, task));
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	strbuf_fini(&why);

	/* Another user's. */
	if (geteuid()) {
		print_message("not root: another user's process is not tried\n");
		return;
	}
	pid = fork();
	if (!pid) {
		if (setuid(65534))
			_exit(2);
		_exit(target_attach(getppid(), &t, &why) == -EPERM && strstr(why.s, "no permission") ? 0 : 1);
	}
	waitpid(pid, &status, 0);
	assert_int_equal(status, 0);
}

static void the_tracers_pid_namespace(void **state)
{
	struct target_pid_ns ns;
	struct stat st;

	(void)state;
	assert_int_equal(target_pid_ns(&ns), 0);
	assert_int_equal(stat("/proc/self/ns/pid", &st), 0);
	assert_int_equal(ns.ino, st.st_ino);
	assert_int_equal(ns.is_initial, ns.ino == 4026531836);
}

static void deleted_programs_are_reached(void **state)
{
	struct target_image i;
	struct target *t;
	struct stat st;
	char cmd[128];

	(void)state;
	snprintf(cmd, sizeof(cmd), "cp %s %s.x", TRACED_PIE, log_path);
	assert_int_equal(system(cmd), 0);
	snprintf(cmd, sizeof(cmd), "%s.x", log_path);
	t = create(cmd);
	unlink(cmd);
	assert_int_equal(target_image(t, &i, NULL), 0);
	assert_true(i.is_deleted);
	assert_string_equal(i.path, cmd);
	assert_int_equal(fstat(i.file->fd, &st), 0);
	assert_int_equal(st.st_ino, i.ino);
	assert_false(target_image_can_exec(t));
	target_image_fini(&i);
	target_free(t);
}

/* Under another root the program has another path than it knows itself. */
static void chroot_and_mount_namespaces(void **state)
{
	struct strbuf cmd = { 0 };
	struct target_image i;
	struct target *t;
	char dir[64], magic[SELFMAG];
	struct stat st;

	(void)state;
	if (geteuid()) {
		print_message("not root: chroot is not tried\n");
		return;
	}
	snprintf(dir, sizeof(dir), "%s.d", log_path);
	strbuf_printf(&cmd, "mkdir -p %s && cp %s %s/traced", dir, TRACED_STATIC, dir);
	assert_int_equal(system(cmd.s), 0);
	strbuf_clear(&cmd);
	strbuf_printf(&cmd, "chroot %s /traced exit 4", dir);
	t = create(cmd.s);
	assert_false(target_other_root(target_pid(t)));
	assert_int_equal(target_next_exec(t, NULL), 0);
	assert_true(target_other_root(target_pid(t)));
	strbuf_clear(&cmd);
	strbuf_printf(&cmd, "%s/traced", dir);
	assert_runs(t, cmd.s);
	assert_int_equal(target_image(t, &i, NULL), 0);
	assert_int_equal(stat(cmd.s, &st), 0);
	assert_int_equal(st.st_ino, i.file->ino);
	target_image_fini(&i);
	assert_true(target_image_can_exec(t));		/* static: nobody knows */
	assert_int_equal(finish(t), 4 << 8);

	/* A file that only the other mount namespace has. */
	strbuf_clear(&cmd);
	strbuf_printf(&cmd, "unshare -m sh -c 'mount -t tmpfs none %s && cp %s %s/hidden && exec %s/hidden exit 6'", dir,
		      TRACED_STATIC, dir, dir);
	t = create(cmd.s);
	do {
		assert_int_equal(target_next_exec(t, NULL), 0);
		assert_int_equal(target_state(t), TARGET_AT_EXEC);
		assert_int_equal(target_image(t, &i, NULL), 0);
		strbuf_clear(&cmd);
		strbuf_puts(&cmd, i.path);
		assert_non_null(i.file);
		assert_int_equal(pread(i.file->fd, magic, sizeof(magic), 0), sizeof(magic));
		assert_memory_equal(magic, ELFMAG, sizeof(magic));
		if (strstr(i.path, "/hidden"))
			assert_int_equal(access(i.path, F_OK), -1);
		target_image_fini(&i);
	} while (!strstr(cmd.s, "/hidden"));
	assert_true(target_other_root(target_pid(t)));
	assert_int_equal(finish(t), 6 << 8);
	strbuf_clear(&cmd);
	strbuf_printf(&cmd, "rm -rf %s", dir);
	assert_int_equal(system(cmd.s), 0);
	strbuf_fini(&cmd);
}

static int setup(void **state)
{
	int fd = mkstemp(log_path);

	(void)state;
	close(fd);
	setenv("TRACED_LOG", log_path, 1);
	return fd < 0;
}

static int teardown(void **state)
{
	(void)state;
	unlink(log_path);
	return 0;
}

#define TEST(f) cmocka_unit_test_setup(f, new_log)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(nothing_runs_before_release),
		TEST(stops_at_the_entry),
		TEST(threads_of_constructors),
		TEST(follows_execs),
		TEST(execs_by_other_threads),
		TEST(statuses),
		TEST(signals_start_as_default),
		TEST(signals_are_passed_on),
		TEST(job_control),
		TEST(own_signals_end_the_wait),
		TEST(commands_that_do_not_start),
		TEST(tracer_dies),
		TEST(free_kills_what_is_held_only),
		TEST(attaching),
		TEST(not_attaching),
		TEST(the_tracers_pid_namespace),
		TEST(deleted_programs_are_reached),
		TEST(chroot_and_mount_namespaces),
	};
	struct target *t = NULL;

	signal(SIGHUP, SIG_DFL);	/* under nohup it is ignored, and programs inherit that */
	if (target_create("true", NULL, &t, NULL) == -EPERM) {
		printf("ptrace is forbidden here\n");
		return 77;	/* skipped */
	}
	target_free(t);
	return cmocka_run_group_tests(tests, setup, teardown);
}
