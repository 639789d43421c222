#include "cmd/lsp/guard.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/now.h"
#include "base/strbuf.h"

#define MAX_MEMORY (UINT64_C(4) << 30)

enum { MAX_RESULT = 256 << 20 };

/* Sanitizers reserve address space without end. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define LIMITS_MEMORY false
#else
#define LIMITS_MEMORY true
#endif

static int put_json(const char *s, size_t len, void *ctx)
{
	struct strbuf *text = ctx;

	strbuf_add(text, s, len);
	return 0;
}

static _Noreturn void child(json_t *(*fn)(void *ctx), void *ctx, unsigned int seconds, int fd, pid_t parent)
{
	/* Only for a child without a parent: else the parent ends it, without a core file. */
	struct rlimit memory = { MAX_MEMORY, MAX_MEMORY }, cpu = { seconds + 5, seconds + 6 };
	struct strbuf text = { 0 };
	json_t *result;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(1);
	setrlimit(RLIMIT_CPU, &cpu);
	if (LIMITS_MEMORY)
		setrlimit(RLIMIT_AS, &memory);
	result = fn(ctx);
	if (!result || json_dump_callback(result, put_json, &text, JSON_COMPACT | JSON_ENCODE_ANY))
		_exit(1);
	for (size_t done = 0; done < text.len; ) {
		ssize_t n = write(fd, text.s + done, text.len - done);

		if (n < 0 && errno != EINTR)
			_exit(1);
		done += n > 0 ? (size_t)n : 0;
	}
	_exit(0);
}

/* Read until the end, at most to the time @end.  0, -ETIMEDOUT, or another errno. */
static int collect(int fd, uint64_t end, struct strbuf *out)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	size_t before = out->len;
	char piece[16384];

	for (;;) {
		uint64_t now = now_ms();
		ssize_t n = now < end ? poll(&p, 1, (int)(end - now)) : 0;

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n ? -errno : -ETIMEDOUT;
		n = read(fd, piece, sizeof(piece));
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n ? -errno : 0;
		strbuf_add(out, piece, (size_t)n);
		if (out->len - before > MAX_RESULT)
			return -EMSGSIZE;
	}
}

static int ended(int e, int status, unsigned int seconds, struct strbuf *why)
{
	if (e == -ETIMEDOUT || (!e && WIFSIGNALED(status) && (WTERMSIG(status) == SIGXCPU || WTERMSIG(status) == SIGKILL)))
		strbuf_printf(why, "it took more than %u seconds", seconds);
	else if (e)
		strbuf_printf(why, "%s", strerror(-e));
	else if (WIFSIGNALED(status))
		strbuf_printf(why, "dtap failed with signal %d, %s: a mistake in dtap", WTERMSIG(status),
			      strsignal(WTERMSIG(status)));
	else if (WEXITSTATUS(status))
		strbuf_puts(why, "there is not enough memory");
	return e ? e : status ? -EIO : 0;
}

int guard_run(json_t *(*fn)(void *ctx), void *ctx, unsigned int seconds, struct strbuf *out, struct strbuf *why)
{
	uint64_t end = now_ms() + (uint64_t)seconds * 1000;
	size_t before = out->len;
	pid_t parent = getpid(), pid;
	int fds[2], e, status = 0;

	if (pipe2(fds, O_CLOEXEC) < 0) {
		e = -errno;
		strbuf_printf(why, "%s", strerror(-e));
		return e;
	}
	pid = fork();
	if (!pid)
		child(fn, ctx, seconds, fds[1], parent);
	close(fds[1]);
	e = pid < 0 ? -errno : collect(fds[0], end, out);
	close(fds[0]);
	if (pid > 0) {
		if (e)
			kill(pid, SIGKILL);
		while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
			;
	}
	e = ended(e, status, seconds, why);
	if (e && out->len > before)
		out->s[out->len = before] = '\0';
	return e;
}
