/*
 * dtap agent: loads the agent when an interpreter starts, for tracers that cannot load it themselves.
 *
 * Python reads each file NAME.pth in a site-packages folder when it starts, and executes lines that begin with
 * "import" (documentation of the site module).  Our line passes the object to the loader of extension modules, which
 * maps it and then fails because it is no extension module; the line ignores this ImportError.  This needs no module
 * that an interpreter may lack, and takes about 100 us.  With DTAP_AGENT_POLL set, the object polls for raised
 * semaphores; the line removes the variable from os.environ again.
 *
 * The interpreter is run to find its folder and, at the end, to check that it has loaded the object.  Interpreters
 * that the agent does not support and folders that cannot be written to are refused.
 */
#include "cmd/cmd.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "abi/cpython.h"
#include "base/child.h"
#include "base/file.h"
#include "base/strbuf.h"
#include "target/agent.h"

#define OBJECT "dtap-agent.so"
#define PTH "dtap-agent.pth"

/* What @ask prints about an interpreter: one line each, in this order. */
enum fact { NAME, VERSION, BITS, THREADING, FOLDER, PREFIX, LOADED, LIBC, NFACTS };

static const char ask[] =
	"import os, site, sys\n"
	"folders = getattr(site, 'getsitepackages', list)()\n"
	"print(sys.implementation.name)\n"
	"print('%d.%d.%d' % sys.version_info[:3])\n"
	"print(64 if sys.maxsize > 2**32 else 32)\n"
	"print('free' if 't' in getattr(sys, 'abiflags', '') else 'gil')\n"
	"print(os.path.realpath(folders[0]) if folders and not sys.flags.no_site else '')\n"
	"print(sys.prefix)\n"
	"print('yes' if '/" OBJECT "' in open('/proc/self/maps').read() else 'no')\n"
	"try: libc = os.confstr('CS_GNU_LIBC_VERSION')\n"	/* musl knows the name, and has no version */
	"except (OSError, ValueError): libc = ''\n"
	"print('glibc' if libc and libc.startswith('glibc') else 'musl')\n";

struct agent_run {
	const char *python, *root;	/* root: "" or the root folder of the interpreter (chroot) */
	char facts[NFACTS][4096];
	struct strbuf object, pth;	/* host paths of the installed files */
};

static int complain(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
static int complain(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	fputs("dtap: agent: ", stderr);
	vfprintf(stderr, fmt, ap);
	fputc('\n', stderr);
	va_end(ap);
	return CMD_ERROR;
}

/* --- the interpreter ------------------------------------------------------------------------------------ */

static void __attribute__((noreturn)) be_python(const struct agent_run *r, int out)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	if (*r->root && (chroot(r->root) || chdir("/")))
		_exit(126);
	dup2(null, STDIN_FILENO);
	dup2(out, STDOUT_FILENO);
	dup2(null, STDERR_FILENO);
	child_signals();
	execlp(r->python, r->python, "-I", "-c", ask, (char *)NULL);
	_exit(127);
}

/* Run the interpreter to get the facts.  0, or an exit code after a message. */
static int ask_python(struct agent_run *r)
{
	int out[2], status, n = 0;
	pid_t pid;
	FILE *f;

	if (pipe2(out, O_CLOEXEC))
		return complain("cannot start %s: %s", r->python, strerror(errno));
	fflush(stdout);
	pid = fork();
	if (!pid)
		be_python(r, out[1]);
	close(out[1]);
	f = fdopen(out[0], "r");
	while (f && pid > 0 && n < NFACTS && fgets(r->facts[n], sizeof(r->facts[n]), f)) {
		r->facts[n][strcspn(r->facts[n], "\n")] = '\0';
		n++;
	}
	if (f)
		fclose(f);
	if (pid < 0 || waitpid(pid, &status, 0) < 0)
		return complain("cannot start %s: %s", r->python, strerror(errno));
	if (WIFEXITED(status) && WEXITSTATUS(status) == 126)
		return complain("cannot enter %s as root folder: it is not there, or you are not root", r->root);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 127)
		return complain("cannot start %s%s%s: there is no such program", r->python, *r->root ? " in " : "", r->root);
	if (n < NFACTS || !WIFEXITED(status) || WEXITSTATUS(status))
		return complain("%s is no Python 3 that answers", r->python);
	return 0;
}

/* Does the agent support this interpreter?  0, or an exit code after a message. */
static int check_python(const struct agent_run *r)
{
	int minor = 0;

	if (strcmp(r->facts[NAME], "cpython"))
		return complain("%s is %s; the agent serves CPython alone", r->python, r->facts[NAME]);
	if (sscanf(r->facts[VERSION], "3.%d", &minor) != 1 || minor < CPYTHON_FIRST ||
	    minor > CPYTHON_LAST)
		return complain("%s is Python %s; the agent serves " CPYTHON_RANGE, r->python, r->facts[VERSION]);
	if (strcmp(r->facts[BITS], "64"))
		return complain("%s is a 32-bit program, which the agent does not serve", r->python);
	if (strcmp(r->facts[THREADING], "gil") && (minor < CPYTHON_FREE_FIRST || minor > CPYTHON_FREE_LAST))
		return complain("%s is a free-threaded build of Python %s; of these the agent serves " CPYTHON_FREE_RANGE, r->python,
				r->facts[VERSION]);
	if (!*r->facts[FOLDER])
		return complain("%s has no site-packages folder", r->python);
	return 0;
}

static int find_python(struct agent_run *r)
{
	int e = ask_python(r);

	if (!e)
		e = check_python(r);
	if (e)
		return e;
	strbuf_printf(&r->object, "%s%s/" OBJECT, r->root, r->facts[FOLDER]);
	strbuf_printf(&r->pth, "%s%s/" PTH, r->root, r->facts[FOLDER]);
	return 0;
}

/* Append the path of dtap's object for the interpreter's C library.  0 or -ENOENT. */
static int find_object(const struct agent_run *r, struct strbuf *path, struct strbuf *why)
{
	struct strbuf object = { 0 };
	int e = agents_object(&object, why);

	if (!e && strcmp(r->facts[LIBC], "musl")) {
		strbuf_puts(path, strbuf_str(&object));
	} else if (!e && !agents_object_musl(strbuf_str(&object), path)) {
		if (why)
			strbuf_printf(why, "dtap's agent for musl is not installed: there is no %s", strbuf_str(path));
		e = -ENOENT;
	}
	strbuf_fini(&object);
	return e;
}

/* --- files ---------------------------------------------------------------------------------------------- */

/* Write @len bytes as file @path atomically: a program that starts meanwhile sees the old or the new file. */
static int write_file(const char *path, const void *bytes, size_t len)
{
	struct strbuf tmp = { 0 };
	int fd, e = 0;

	strbuf_printf(&tmp, "%s.%d", path, (int)getpid());
	fd = open(strbuf_str(&tmp), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
	if (fd < 0) {
		e = -errno;
	} else {
		if (write(fd, bytes, len) != (ssize_t)len)
			e = errno ? -errno : -EIO;
		if (fchmod(fd, 0644) && !e)
			e = -errno;
		if (close(fd) && !e)
			e = -errno;
		if (!e && rename(strbuf_str(&tmp), path))
			e = -errno;
		if (e)
			unlink(strbuf_str(&tmp));
	}
	strbuf_fini(&tmp);
	return e;
}

/* Append the whole file @path, which may be in another user's folder, to @out. */
static int read_file(const char *path, struct strbuf *out)
{
	enum { OBJECT_MAX = 64 << 20 };
	struct file *f;
	int e = file_open(path, &f, NULL);

	if (e)
		return e;
	e = file_text(f, OBJECT_MAX, out);
	file_close(f);
	return e;
}

static bool same_files(const char *a, const char *b)
{
	struct strbuf x = { 0 }, y = { 0 };
	bool same = !read_file(a, &x) && !read_file(b, &y) && x.len == y.len && x.len && !memcmp(x.s, y.s, x.len);

	strbuf_fini(&x);
	strbuf_fini(&y);
	return same;
}

/* The text of the .pth file. */
static void write_pth(struct strbuf *out, const char *folder)
{
	strbuf_puts(out, "# Loads dtap's agent: \"dtap agent remove\" takes it away.\n"
			 "import _imp, os, sys; exec(\"os.environ['DTAP_AGENT_POLL'] = '1'\\n"
			 "try: _imp.create_dynamic(type(sys.implementation)(name='dtap_agent', origin='");
	strbuf_printf(out, "%s/" OBJECT, folder);
	strbuf_puts(out, "'))\\nexcept ImportError: pass\\nfinally: del os.environ['DTAP_AGENT_POLL']\")\n");
}

static bool is_installed(const struct agent_run *r)
{
	return !access(strbuf_str(&r->object), F_OK) && !access(strbuf_str(&r->pth), F_OK);
}

/* Remove both files; a missing one is no error. */
static int remove_files(const struct agent_run *r)
{
	const char *paths[] = { strbuf_str(&r->pth), strbuf_str(&r->object) };
	int e = 0;

	for (size_t i = 0; i < 2; i++)
		if (unlink(paths[i]) && errno != ENOENT)
			e = complain("cannot remove %s: %s", paths[i], strerror(errno));
	return e;
}

/* --- the three commands --------------------------------------------------------------------------------- */

static int install(struct agent_run *r)
{
	struct strbuf object = { 0 }, pth = { 0 };
	struct strbuf folder = { 0 }, from = { 0 }, why = { 0 };
	int e, err;

	e = find_python(r);
	if (e)
		goto out;
	if (find_object(r, &from, &why)) {
		e = complain("%s", strbuf_str(&why));
		goto out;
	}
	/* Quotes, backslashes and newlines would break the string in the line. */
	if (strpbrk(r->facts[FOLDER], "'\"\\\n")) {
		e = complain("%s: a folder of that name cannot stand in a .pth file", r->facts[FOLDER]);
		goto out;
	}
	strbuf_printf(&folder, "%s%s", r->root, r->facts[FOLDER]);
	if (mkdir(strbuf_str(&folder), 0755) && errno != EEXIST) {
		e = complain("cannot make %s: %s", strbuf_str(&folder), strerror(errno));
		goto out;
	}
	err = read_file(strbuf_str(&from), &object);
	write_pth(&pth, r->facts[FOLDER]);
	if (!err)
		err = write_file(strbuf_str(&r->object), object.s, object.len);
	if (!err)
		err = write_file(strbuf_str(&r->pth), pth.s, pth.len);
	if (err) {
		e = complain("cannot write to %s: %s%s", strbuf_str(&folder), strerror(-err),
			     err == -EACCES || err == -EROFS ? " (root may, or use a virtual environment of your own)" : "");
		goto out;
	}
	e = ask_python(r);
	if (!e && strcmp(r->facts[LOADED], "yes")) {
		e = complain("%s does not load %s at its start: taken away again", r->python, strbuf_str(&r->object));
		remove_files(r);
	}
	if (!e)
		printf("installed in %s: Python %s loads the agent from its next start on\n", strbuf_str(&folder),
		       r->facts[VERSION]);
out:
	strbuf_fini(&from);
	strbuf_fini(&why);
	strbuf_fini(&object);
	strbuf_fini(&pth);
	strbuf_fini(&folder);
	return e;
}

static int uninstall(struct agent_run *r)
{
	bool was = false;
	int e = find_python(r);

	if (!e) {
		was = !access(strbuf_str(&r->object), F_OK) || !access(strbuf_str(&r->pth), F_OK);
		e = remove_files(r);
	}
	if (!e && was)
		printf("removed from %s%s; programs that run now keep it\n", r->root, r->facts[FOLDER]);
	else if (!e)
		printf("was not installed in %s%s\n", r->root, r->facts[FOLDER]);
	return e;
}

/* Exit code 0 if the agent is installed and loaded. */
static int status(struct agent_run *r)
{
	struct strbuf mine = { 0 };
	int e = find_python(r);

	if (e)
		return e;
	find_object(r, &mine, NULL);
	printf("python: %s, CPython %s%s%s\n", r->python, r->facts[VERSION], *r->root ? " in " : "", r->root);
	printf("folder: %s%s\n", r->root, r->facts[FOLDER]);
	if (!is_installed(r)) {
		printf("agent: not installed\n");
		e = CMD_ERROR;
	} else if (strcmp(r->facts[LOADED], "yes")) {
		printf("agent: installed, but it is not loaded\n");
		e = CMD_ERROR;
	} else {
		printf("agent: installed%s\n", same_files(strbuf_str(&mine), strbuf_str(&r->object)) ? ""
				: ", another version than this dtap's: install it again");
		printf("bpftrace: usdt:%s:python:function__entry\n", strbuf_str(&r->object));
	}
	strbuf_fini(&mine);
	return e;
}

static void usage(FILE *f)
{
	fputs("usage: dtap agent install|remove|status [--python EXE] [--root FOLDER]\n"
	      "\n"
	      "Has an interpreter or virtual environment load dtap's agent whenever it starts, so that any tracer finds\n"
	      "CPython's markers in it.  dtrace needs no installed agent.\n"
	      "\n"
	      "  --python EXE   the interpreter (default python3, as PATH has it); a virtual environment's is bin/python\n"
	      "  --root FOLDER  the interpreter lives in this folder, as chroot(8) has it\n", f);
}

int cmd_agent(int argc, char **argv)
{
	static const struct option longs[] = {
		{ "python", required_argument, NULL, 'p' },
		{ "root", required_argument, NULL, 'r' },
		{ "help", no_argument, NULL, 'h' },
		{ NULL, 0, NULL, 0 },
	};
	static const struct verb {
		const char *name;
		int (*run)(struct agent_run *r);
	} verbs[] = { { "install", install }, { "remove", uninstall }, { "status", status } };
	struct agent_run *r = calloc(1, sizeof(*r));
	const struct verb *verb = NULL;
	int c, e = CMD_USAGE;
	size_t i;

	if (!r)
		return complain("out of memory");
	r->python = "python3";
	r->root = "";
	while ((c = getopt_long(argc, argv, "", longs, NULL)) != -1) {
		if (c == 'p') {
			r->python = optarg;
		} else if (c == 'r') {
			r->root = strcmp(optarg, "/") ? optarg : "";
		} else if (c == 'h') {
			usage(stdout);
			e = CMD_OK;
			goto out;
		} else {
			goto wrong;
		}
	}
	for (i = 0; optind == argc - 1 && i < sizeof(verbs) / sizeof(verbs[0]); i++)
		if (!strcmp(verbs[i].name, argv[optind]))
			verb = &verbs[i];
	if (verb) {
		e = verb->run(r);
		goto out;
	}
	if (optind == argc - 1)
		complain("there is no command '%s'", argv[optind]);
wrong:
	usage(stderr);
out:
	strbuf_fini(&r->object);
	strbuf_fini(&r->pth);
	free(r);
	return e;
}
