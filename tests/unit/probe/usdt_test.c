/*
 * The usdt provider on live processes: the program of elf/marked.c, run plainly, deleted, and in a mount
 * namespace of its own; and CPython 3.9 in a chroot, when there is one.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <linux/perf_event.h>

#include <cmocka.h>

#include "base/file.h"
#include "probe/probe.h"

struct child {
	pid_t pid;
	int in;		/* closing it ends the child */
};

/* What the child does before it executes @argv; a failure is exit status 77: it may not. */
typedef bool before_exec(const char *const *argv);

/* Start @argv and wait until it has written a byte.  pid 0: it may not do what it should. */
static struct child start(const char *const *argv, before_exec *before)
{
	int in[2], out[2];
	struct child c;
	char byte;

	assert_int_equal(pipe2(in, O_CLOEXEC), 0);
	assert_int_equal(pipe2(out, O_CLOEXEC), 0);
	c.pid = fork();
	assert_true(c.pid >= 0);
	if (!c.pid) {
		dup2(in[0], 0);
		dup2(out[1], 1);
		if (!before || before(argv))
			execv(argv[0], (char *const *)argv);
		_exit(77);
	}
	close(in[0]);
	close(out[1]);
	c.in = in[1];
	if (read(out[0], &byte, 1) != 1) {
		close(c.in);
		waitpid(c.pid, NULL, 0);
		c.pid = 0;
	}
	close(out[0]);
	return c;
}

static void stop(struct child c)
{
	int status;

	close(c.in);
	assert_int_equal(waitpid(c.pid, &status, 0), c.pid);
	assert_int_equal(status, 0);
}

static char *text(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
static char *text(const char *fmt, ...)
{
	static char bufs[8][128];
	static unsigned int next;
	char *buf = bufs[next++ % 8];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(buf, sizeof(bufs[0]), fmt, ap);
	va_end(ap);
	return buf;
}

static struct probe_list find(struct probe_set *set, enum probe_want want, const char *prov, const char *func,
			      const char *name)
{
	struct probe_desc d = { .prov = prov, .mod = "", .func = func, .name = name };
	struct probe_list list = { 0 };

	probe_find(set, &d, want, &list);
	return list;
}

static bool can_open(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	close(fd);
	return fd >= 0;
}

static bool reads_elf(const struct site *s)
{
	char magic[4];

	return pread(s->file->fd, magic, sizeof(magic), 0) == sizeof(magic) && !memcmp(magic, "\177ELF", sizeof(magic));
}

#ifdef MARKED

static const char *const marked_argv[] = { MARKED, "wait", NULL };

static void one_process(void **state)
{
	struct probe_set *set = probe_set_new();
	struct child c = start(marked_argv, NULL);
	struct probe_list l = find(set, PROBE_ENABLE, text("marked%d", c.pid), "", "");

	(void)state;
	assert_int_equal(l.n, 3);
	assert_string_equal(l.probes[0]->prov, text("marked%d", c.pid));
	assert_string_equal(l.probes[0]->mod, "marked");
	assert_string_equal(l.probes[0]->func, "marked_first");
	assert_string_equal(l.probes[0]->name, "one");
	assert_int_equal(l.probes[0]->pid, c.pid);
	assert_false(l.probes[0]->pid_suffix);
	assert_int_equal(l.probes[0]->kind, PROBE_SITES);
	assert_int_equal(l.probes[0]->nsites, 1);
	assert_true(l.probes[0]->sites[0]->off && l.probes[0]->sites[0]->sem_off);
	assert_true(reads_elf(l.probes[0]->sites[0]));
	assert_int_equal(l.probes[0]->sig.nargs, 2);
	assert_string_equal(probe_arg_type(&l.probes[0]->sig.args[0]), "int32_t");
	assert_string_equal(probe_arg_type(&l.probes[0]->sig.args[1]), "uint64_t");
	assert_int_equal(l.probes[1]->sites[0]->sem_off, 0);

	/* The same names give the same probes again. */
	assert_ptr_equal(find(set, PROBE_ENABLE, text("marked%d", c.pid), "*second", "one").probes[0], l.probes[2]);
	assert_int_equal(find(set, PROBE_LIST, text("mark*%d", c.pid), "", "one").n, 2);
	assert_int_equal(find(set, PROBE_LIST, text("marked%d", c.pid), "", "two").n, 0);
	assert_int_equal(find(set, PROBE_LIST, text("marked0%d", c.pid), "", "").n, 0);

	/* A marker of another provider in the same file, with a type that the documentation gives. */
	l = find(set, PROBE_ENABLE, text("python%d", c.pid), "", "gc-start");
	assert_int_equal(l.n, 1);
	assert_string_equal(probe_arg_type(&l.probes[0]->sig.args[0]), "int");
	assert_int_equal(find(set, PROBE_ENABLE, text("python%d", c.pid), "", "gc__start").n, 0);
	stop(c);
	probe_set_free(set);
}

static void all_processes(void **state)
{
	struct child a = start(marked_argv, NULL), b = start(marked_argv, NULL);
	struct probe_set *set = probe_set_new();
	struct probe_list l, of_b;

	(void)state;
	/* Listed, each process has its own probe on the file's one site; other tests may have copies of the program. */
	assert_true(find(set, PROBE_LIST, "marked*", "", "plain").n >= 2);
	l = find(set, PROBE_LIST, text("marked%d", a.pid), "", "plain");
	of_b = find(set, PROBE_LIST, text("marked%d", b.pid), "", "plain");
	assert_int_equal(l.n, 1);
	assert_int_equal(of_b.n, 1);
	assert_ptr_not_equal(l.probes[0], of_b.probes[0]);
	assert_ptr_equal(l.probes[0]->sites[0], of_b.probes[0]->sites[0]);
	/* Enabled, one probe stands for all. */
	l = find(set, PROBE_ENABLE, "marked*", "", "plain");
	assert_int_equal(l.n, 1);
	assert_string_equal(l.probes[0]->prov, "marked");
	assert_true(l.probes[0]->pid_suffix);
	assert_int_equal(l.probes[0]->pid, 0);
	assert_ptr_equal(find(set, PROBE_ENABLE, "", "", "plain").probes[0], l.probes[0]);
	assert_ptr_equal(find(set, PROBE_ENABLE, "m*", "marked_f*", "pl*").probes[0], l.probes[0]);
	/* A pattern that not every pid fits. */
	l = find(set, PROBE_ENABLE, text("marke?%d", a.pid), "", "plain");
	assert_int_equal(l.n, 1);
	assert_int_equal(l.probes[0]->pid, a.pid);
	stop(a);
	stop(b);
	probe_set_free(set);
}

/* The file was deleted while it ran. */
static void deleted(void **state)
{
	char path[] = "/tmp/dtap-usdt-XXXXXX", cmd[256];
	const char *const argv[] = { path, "wait", NULL };
	struct probe_set *set = probe_set_new();
	struct probe_list l;
	struct child c;
	int fd = mkstemp(path);

	(void)state;
	assert_true(fd >= 0);
	close(fd);
	snprintf(cmd, sizeof(cmd), "cp %s %s && chmod 755 %s", MARKED, path, path);
	assert_int_equal(system(cmd), 0);
	c = start(argv, NULL);
	assert_true(c.pid);
	unlink(path);
	l = find(set, PROBE_ENABLE, text("marked%d", c.pid), "", "one");
	if (!l.n)	/* without the capability to use map_files, it is refused with a reason */
		assert_non_null(strstr(probe_why(set), path));
	else
		assert_true(reads_elf(l.probes[0]->sites[0]));
	assert_true(l.n || geteuid());
	stop(c);
	probe_set_free(set);
}

/* A program that runs although its notes are damaged: named, it is refused with the reason; else passed over. */
static void damaged(void **state)
{
	char path[] = "/tmp/dtap-usdt-XXXXXX", cmd[256], *data, *note;
	const char *const argv[] = { path, "wait", NULL };
	struct probe_set *set = probe_set_new();
	struct child c;
	struct stat st;
	int fd;

	(void)state;
	close(mkstemp(path));
	snprintf(cmd, sizeof(cmd), "cp %s %s && chmod 755 %s", MARKED, path, path);
	assert_int_equal(system(cmd), 0);
	fd = open(path, O_RDWR | O_CLOEXEC);
	assert_int_equal(fstat(fd, &st), 0);
	data = malloc((size_t)st.st_size);
	assert_int_equal(read(fd, data, (size_t)st.st_size), st.st_size);
	note = memmem(data, (size_t)st.st_size, "\3\0\0\0stapsdt", 12);
	assert_non_null(note);
	assert_int_equal(pwrite(fd, "\xff\xff", 2, note - data - 4), 2);
	close(fd);
	free(data);

	c = start(argv, NULL);
	assert_int_equal(find(set, PROBE_ENABLE, text("marked%d", c.pid), "", "one").n, 0);
	assert_string_equal(probe_why(set), text("%s: notes: truncated note at offset 0x0 of .note.stapsdt", path));
	find(set, PROBE_ENABLE, "marked*", "", "");
	assert_string_equal(probe_why(set), "");
	stop(c);
	unlink(path);
	probe_set_free(set);
}

static bool own_mounts(const char *const *argv)
{
	char cmd[256];

	(void)argv;
	if (unshare(CLONE_NEWNS) || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
	    mount("dtap", "/mnt", "tmpfs", 0, NULL))
		return false;
	snprintf(cmd, sizeof(cmd), "cp %s /mnt/hidden", MARKED);
	return !system(cmd);
}

/* argv[2] is the process whose mounts to share. */
static bool join_mounts(const char *const *argv)
{
	int fd = open(text("/proc/%s/ns/mnt", argv[2]), O_RDONLY | O_CLOEXEC);

	return fd >= 0 && !setns(fd, CLONE_NEWNS);
}

/* The file is on a file system that only its processes see; the path leads through one that runs. */
static void mount_namespace(void **state)
{
	static const char *const argv[] = { "/mnt/hidden", "wait", NULL };
	struct probe_set *set = probe_set_new();
	struct child c = start(argv, own_mounts), second;
	const char *second_argv[] = { "/mnt/hidden", "wait", text("%d", c.pid), NULL };
	struct probe_list l;
	struct site *site;

	(void)state;
	if (!c.pid) {
		probe_set_free(set);
		print_message("needs the right to mount\n");
		skip();
	}
	l = find(set, PROBE_ENABLE, text("marked%d", c.pid), "", "one");
	assert_int_equal(l.n, 2);
	assert_string_equal(l.probes[0]->mod, "hidden");
	assert_string_equal(l.probes[0]->sites[0]->file->path, "/mnt/hidden");
	site = l.probes[0]->sites[0];
	assert_true(reads_elf(site));
	second = start(second_argv, join_mounts);
	stop(c);
	l = find(set, PROBE_ENABLE, text("marked%d", second.pid), "", "one");
	assert_int_equal(l.n, 2);
	assert_ptr_equal(l.probes[0]->sites[0], site);
	assert_true(reads_elf(site));
	stop(second);
	probe_set_free(set);
}

#endif

static const char *bullseye(void)
{
	const char *root = getenv("DTAP_PYTHONS");
	char *path = text("%s/bullseye", root ? root : "/var/cache/dtap/pythons");

	return can_open(text("%s/usr/bin/python3.9", path)) ? path : NULL;
}

static bool change_root(const char *const *argv)
{
	(void)argv;
	return !chroot(bullseye()) && !chdir("/");
}

/*
 * Count the firings of @s in process @pid: a perf event's descriptor, or a negative errno.  The semaphore
 * goes in the upper half of config (perf_event_open(2), "uprobe").
 */
static int count_site(const struct site *s, pid_t pid)
{
	char link[FILE_LINK_MAX];
	struct perf_event_attr attr = { .size = sizeof(attr), .config = s->sem_off << 32,
					.config1 = (uintptr_t)file_link(s->file, link), .config2 = s->off };
	FILE *f = fopen("/sys/bus/event_source/devices/uprobe/type", "re");
	unsigned int type;
	int fd;

	if (!f)
		return -ENOENT;
	if (fscanf(f, "%u", &type) != 1)
		type = 0;
	fclose(f);
	attr.type = type;
	fd = (int)syscall(SYS_perf_event_open, &attr, pid, -1, -1, PERF_FLAG_FD_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

/*
 * CPython 3.9 has all eight markers, and the chroot must not keep us from its file.  With function-entry armed
 * it fires for each call: so offset, semaphore and path are what the kernel wants.
 */
static void chrooted_python(void **state)
{
	static const char *const argv[] = {
		"/usr/bin/python3.9", "-Sc",
		"import os, sys\n"
		"def f(): pass\n"
		"os.write(1, b'x')\n"
		"os.read(0, 1)\n"
		"for i in range(1000): f()\n"
		"os._exit(0)\n", NULL };
	struct probe_set *set;
	struct probe_list l;
	struct child c = { 0 };
	uint64_t count = 0;
	int fd;

	(void)state;
	if (bullseye())
		c = start(argv, change_root);
	if (!c.pid) {
		print_message("needs the interpreters and the right to change root\n");
		skip();
	}
	set = probe_set_new();
	l = find(set, PROBE_ENABLE, text("python%d", c.pid), "", "");
	assert_int_equal(l.n, 8);
	for (size_t i = 0; i < l.n; i++) {
		assert_string_equal(l.probes[i]->mod, "python3.9");
		assert_true(reads_elf(l.probes[i]->sites[0]));
		for (unsigned int k = 0; k < l.probes[i]->sig.nargs; k++)
			assert_non_null(l.probes[i]->sig.args[k].type);
	}
	l = find(set, PROBE_ENABLE, text("python%d", c.pid), "", "function-entry");
	assert_int_equal(l.n, 1);
	assert_int_equal(l.probes[0]->sig.nargs, 3);
	fd = count_site(l.probes[0]->sites[0], c.pid);
	stop(c);
	if (fd >= 0) {
		assert_int_equal(read(fd, &count, sizeof(count)), sizeof(count));
		close(fd);
		assert_int_equal(count, 1000);
	} else {
		print_message("not counted: %s\n", strerror(-fd));
	}
	probe_set_free(set);
}

static void nobody(void **state)
{
	struct probe_set *set = probe_set_new();

	(void)state;
	assert_int_equal(find(set, PROBE_ENABLE, "python999999999", "", "").n, 0);
	assert_string_equal(probe_why(set), "process 999999999: No such process");
	assert_int_equal(find(set, PROBE_ENABLE, "python", "", "").n, 0);
	assert_int_equal(find(set, PROBE_ENABLE, "12", "", "").n, 0);
	assert_int_equal(find(set, PROBE_ENABLE, "python99999999999999999999999", "", "").n, 0);
	probe_set_free(set);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#ifdef MARKED
		cmocka_unit_test(one_process), cmocka_unit_test(all_processes),
		cmocka_unit_test(deleted),     cmocka_unit_test(mount_namespace),
		cmocka_unit_test(damaged),
#endif
		cmocka_unit_test(chrooted_python),
		cmocka_unit_test(nobody),
	};

	signal(SIGPIPE, SIG_IGN);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
