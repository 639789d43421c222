#include "d/cpp.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include <fcntl.h>

#include "base/arena.h"
#include "base/child.h"
#include "base/strbuf.h"
#include "lang/source.h"

enum { MAX_OUTPUT = 16 << 20, MAX_QUOTE = 2000 };

/* Make an anonymous file with @len bytes of @text.  Returns its descriptor, at the start, or a negative errno. */
static int memory_file(const char *name, const char *text, size_t len)
{
	int fd = memfd_create(name, MFD_CLOEXEC), err;
	size_t done = 0;
	ssize_t n;

	if (fd < 0)
		return -errno;
	while (done < len) {
		n = write(fd, text + done, len - done);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0) {
			err = -errno;
			close(fd);
			return err;
		}
		done += (size_t)n;
	}
	lseek(fd, 0, SEEK_SET);
	return fd;
}

/* Read all of @fd; -EFBIG if that is more than @max bytes. */
static int read_all(int fd, struct strbuf *out, size_t max)
{
	char buf[16384];
	ssize_t n;

	for (;;) {
		n = read(fd, buf, sizeof(buf));
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (!n)
			return 0;
		if (out->len + (size_t)n > max)
			return -EFBIG;
		strbuf_add(out, buf, (size_t)n);
	}
}

static const char **arguments(struct arena *a, const struct source *src, const char *path,
			      const char *const *args)
{
	/*
	 * The predefined macros.  Some remove what D cannot parse in system headers: gcc's extensions, and inline
	 * functions.
	 */
	static const char *const own[] = { "cpp", "-D__SUNW_D=1", "-D__SUNW_D_64=1", "-D__SUNW_D_VERSION=0x01000000",
					   "-D__DTAP_D=1", "-D__attribute__(x)=", "-D__asm__(x)=", "-D__extension__=",
					   "-D__inline=", "-D__restrict=", "-D__signed__=signed", "-D__builtin_va_list=char *",
					   "-D_Float32=float", "-D_Float64=double", "-D_Float32x=double",
					   "-D_Float64x=long double", "-D_Float128=long double",
					   "-D_ALLOCA_H=1", "-D_BITS_BYTESWAP_H=1", "-D_BITS_UINTN_IDENTITY_H=1", "-iquote" };
	const char *slash = strrchr(src->name, '/'), **argv;
	size_t n = 0, nown = sizeof(own) / sizeof(own[0]);

	while (args && args[n])
		n++;
	argv = arena_alloc(a, (nown + n + 4) * sizeof(*argv));
	memcpy(argv, own, sizeof(own));
	argv[0] = path;
	argv[nown++] = slash ? arena_strndup(a, src->name, (size_t)(slash - src->name) + 1) : ".";
	if (n)
		memcpy(argv + nown, args, n * sizeof(*argv));
	argv[nown + n] = "-";
	return argv;
}

/* Start cpp with these standard files.  Returns its process id, or a negative errno. */
static pid_t start(const char **argv, int in, int out, int errors)
{
	posix_spawn_file_actions_t fa;
	pid_t pid;
	int err;

	err = posix_spawn_file_actions_init(&fa);
	if (err)
		return -err;
	err = posix_spawn_file_actions_adddup2(&fa, in, STDIN_FILENO);
	if (!err)
		err = posix_spawn_file_actions_adddup2(&fa, out, STDOUT_FILENO);
	if (!err)
		err = posix_spawn_file_actions_adddup2(&fa, errors, STDERR_FILENO);
	if (!err)
		err = child_spawn(&pid, argv[0], &fa, (char *const *)argv);
	posix_spawn_file_actions_destroy(&fa);
	return err ? -err : pid;
}

int d_cpp(struct arena *a, const struct source *src, const char *path, const char *const *args, struct source **ret,
	  const char **err)
{
	struct strbuf text = { 0 }, errors = { 0 };
	int in = -1, errs = -1, pipes[2] = { -1, -1 }, status, e;
	pid_t pid = -1, got;
	size_t skip;

	skip = src->len > 1 && src->text[0] == '#' && src->text[1] == '!' ? strcspn(src->text, "\n") : 0;
	in = memory_file("script", src->text + skip, src->len - skip);
	errs = memory_file("errors", "", 0);
	if (in < 0 || errs < 0) {
		e = in < 0 ? in : errs;
		goto fail;
	}
	if (pipe2(pipes, O_CLOEXEC)) {
		e = -errno;
		goto fail;
	}
	pid = start(arguments(a, src, path, args), in, pipes[1], errs);
	if (pid < 0) {
		e = pid;
		goto fail;
	}
	close(pipes[1]);
	pipes[1] = -1;
	e = read_all(pipes[0], &text, MAX_OUTPUT);
	close(pipes[0]);	/* ends cpp if it is still running */
	pipes[0] = -1;
	do
		got = waitpid(pid, &status, 0);
	while (got < 0 && errno == EINTR);
	if (e)
		goto fail;
	if (got < 0) {
		e = -errno;
		goto fail;
	}
	lseek(errs, 0, SEEK_SET);
	read_all(errs, &errors, MAX_OUTPUT);
	if (!WIFEXITED(status) || WEXITSTATUS(status)) {
		e = -EINVAL;
		goto fail;
	}
	*ret = source_text(a, src->name, strbuf_str(&text), text.len);
	(*ret)->orig = src;
	*err = errors.len ? arena_printf(a, "%s", strbuf_str(&errors)) : NULL;
	goto out;
fail:
	if (e == -ENOENT)
		*err = arena_printf(a, "cannot run %s: it is not installed (on Debian: apt-get install cpp)", path);
	else if (e == -EINVAL && errors.len)
		*err = arena_printf(a, "cpp failed: %.*s", MAX_QUOTE, strbuf_str(&errors));
	else if (e == -EFBIG)
		*err = "cpp made more than 16 MiB of it";
	else
		*err = arena_printf(a, "cannot run cpp: %s", strerror(-e));
out:
	if (in >= 0)
		close(in);
	if (errs >= 0)
		close(errs);
	if (pipes[0] >= 0)
		close(pipes[0]);
	if (pipes[1] >= 0)
		close(pipes[1]);
	strbuf_fini(&text);
	strbuf_fini(&errors);
	return e;
}
