/*
 * Starting a target.  The child waits on a socket until the tracer has seized it by ptrace, then calls exec; if that
 * fails, it sends the error number over the same socket, which a successful exec closes.  If the tracer dies first, the
 * child reads end of file and exits, so the command can never run without being held.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/child.h"
#include "base/file.h"
#include "target/priv.h"
#include "target/words.h"

/* Is @path a file that may be executed?  0, or why not. */
static int is_command(const char *path)
{
	struct stat st;

	if (stat(path, &st))
		return -errno;
	if (S_ISDIR(st.st_mode))
		return -EISDIR;
	return access(path, X_OK) ? -errno : 0;
}

/* Look for command @name as a shell does.  @path is left empty if it is not found in PATH. */
static int find_command(const char *name, struct strbuf *path)
{
	const char *dir = getenv("PATH"), *end;
	int err, ret = -ENOENT;

	if (strchr(name, '/')) {
		strbuf_puts(path, name);
		return is_command(name);
	}
	if (!dir)
		dir = "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin";
	for (;; dir = end + 1) {
		end = strchrnul(dir, ':');
		strbuf_clear(path);
		strbuf_add(path, dir, (size_t)(end - dir));
		if (end > dir)		/* an empty entry is the current directory */
			strbuf_putc(path, '/');
		strbuf_puts(path, name);
		err = is_command(strbuf_str(path));
		if (!err)
			return 0;
		/* As shells do: report this error if no later folder has it; not if the folder cannot be searched. */
		if (err == -EACCES && !access(strbuf_str(path), F_OK))
			ret = err;
		if (!*end)
			break;
	}
	strbuf_clear(path);
	return ret;
}

/* If the file @path is a script, append its interpreter's path to @interp. */
static void script_interp(const char *path, struct strbuf *interp)
{
	char line[256];
	struct file *f;
	ssize_t n;

	if (file_open(path, &f, NULL))
		return;
	n = file_pread(f->fd, line, sizeof(line) - 1, 0);
	file_close(f);
	if (n < 2 || memcmp(line, "#!", 2))
		return;
	line[n] = '\0';
	strbuf_add(interp, line + 2 + strspn(line + 2, " \t"),
		   strcspn(line + 2 + strspn(line + 2, " \t"), " \t\n"));
}

/* Word in @why why @name, which was found at @path, could not be started; returns @err. */
static int exec_failed(const char *name, const char *path, int err, struct strbuf *why)
{
	bool exists = !access(path, F_OK);
	struct strbuf interp = { 0 };

	if ((err == -ENOENT || err == -EACCES) && !access(path, X_OK))	/* so @path itself is not the reason */
		script_interp(path, &interp);
	if (err == -ENOENT && !exists && !strchr(name, '/'))
		target_fail(why, err, "command '%s' not found in PATH", name);
	else if (err == -ENOEXEC)
		target_fail(why, err, "cannot run %s: neither a program for this machine nor a script "
			    "that begins with #!", name);
	else if (interp.len && access(interp.s, X_OK))
		target_fail_errno(why, -errno, "cannot run %s: its interpreter %s", name, interp.s);
	else if (err == -ENOENT && exists)
		target_fail(why, err, "cannot run %s: the loader that it asks for does not exist", name);
	else
		target_fail_errno(why, err, "cannot run %s", name);
	strbuf_fini(&interp);
	return err;
}

/* In the child: wait for the tracer's byte, then execute the command.  Only async-signal-safe calls. */
static void __attribute__((noreturn)) child_main(int sock, const char *path, char *const *argv, char *const *env)
{
	char go;
	int err;

	if (read(sock, &go, 1) != 1)
		_exit(127);
	child_signals();
	execve(path, argv, env);
	err = errno;
	if (write(sock, &err, sizeof(err)) < 0)
		_exit(126);
	_exit(127);
}

/* Fork the child of @t and hold it at its exec of @path.  A child whose exec fails is reaped. */
static int start(struct target *t, const char *path, char *const *argv, char *const *env, struct strbuf *why)
{
	int sock[2] = { -1, -1 }, err, exec_err;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sock))
		return target_fail_errno(why, -errno, "cannot start %s", argv[0]);
	t->pid = fork();
	if (t->pid == 0) {
		close(sock[0]);
		child_main(sock[1], path, argv, env);
	}
	if (t->pid < 0) {
		err = target_fail_errno(why, -errno, "cannot start %s", argv[0]);
		goto out;
	}
	close(sock[1]);
	sock[1] = -1;
	t->pidfd = target_pidfd(t->pid);
	err = hold_seize(t);
	if (err) {
		target_fail_errno(why, err, "cannot hold %s by ptrace", argv[0]);
		goto out;
	}
	if (send(sock[0], "", 1, MSG_NOSIGNAL) != 1) {
		err = target_fail_errno(why, -errno, "cannot start %s", argv[0]);
		goto out;
	}
	err = hold_wait(t, why);
	if (err)
		goto out;
	if (t->state == TARGET_EXITED) {
		if (recv(sock[0], &exec_err, sizeof(exec_err), MSG_DONTWAIT) == sizeof(exec_err))
			err = exec_failed(argv[0], path, -exec_err, why);
		else
			err = target_fail(why, -ECHILD, "%s was killed before it started", argv[0]);
	}
out:
	close(sock[0]);
	if (sock[1] >= 0)
		close(sock[1]);
	return err;
}

int target_find_command(const char *cmdline, struct strbuf *path)
{
	char **argv = NULL;
	size_t argc;
	int err = words_split(cmdline, &argv, &argc);

	if (!err)
		err = argc ? find_command(argv[0], path) : -EINVAL;
	free(argv);
	return err;
}

int target_create(const char *cmdline, const struct target_preload *preload, struct target **ret,
		  struct strbuf *why)
{
	struct strbuf path = { 0 };
	struct target *t = NULL;
	char **argv = NULL, **env = NULL;
	size_t argc;
	int err;

	if (proc_refusal())
		return target_fail(why, -ENOENT, "%s", proc_refusal());
	err = words_split(cmdline, &argv, &argc);
	if (err == -EINVAL)
		return target_fail(why, err, "command has an open quote: %s", cmdline);
	if (err)
		return target_fail_errno(why, err, "cannot start %s", cmdline);
	if (!argc) {
		err = target_fail(why, -EINVAL, "command is empty");
		goto out;
	}
	err = find_command(argv[0], &path);
	if (err) {
		exec_failed(argv[0], strbuf_str(&path), err, why);
		goto out;
	}
	t = calloc(1, sizeof(*t));
	env = preload ? preload_environ(preload) : NULL;
	if (!t || (preload && !env)) {
		err = target_fail_errno(why, -ENOMEM, "cannot start %s", argv[0]);
		goto out;
	}
	t->preload = preload;
	t->pid = -1;
	t->pidfd = -1;
	t->is_child = true;
	t->is_moving = true;
	err = start(t, path.s, argv, env ? env : environ, why);
	if (!err) {
		*ret = t;
		t = NULL;
	}
out:
	target_free(t);
	strbuf_fini(&path);
	free(env);
	free(argv);
	return err;
}
