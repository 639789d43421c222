/*
 * The binary of all commands: finds the command by argv[0], or by the first argument.
 */
#include "cmd/cmd.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/oom.h"
#include "base/self.h"
#include "cmd/ready/find.h"
#include "cmd/ready/ready.h"
#include "dtap.h"
#include "lang/similar.h"

static const struct command {
	const char *name, *what;
	int (*run)(int argc, char **argv);
} commands[] = {
#define COMMAND(name, what) { #name, what, cmd_##name },
#include "cmd/commands.def"
#undef COMMAND
};

enum { NCOMMANDS = sizeof(commands) / sizeof(commands[0]) };

static const struct command *find(const char *name)
{
	int i;

	for (i = 0; i < NCOMMANDS; i++)
		if (!strcmp(commands[i].name, name))
			return &commands[i];
	return NULL;
}

static void usage(FILE *f)
{
	int i;

	fputs("usage: dtap COMMAND [argument ...]\n\n", f);
	for (i = 0; i < NCOMMANDS; i++)
		fprintf(f, "  %-10s %s\n", commands[i].name, commands[i].what);
	fputs("\nReady-made commands, which are scripts:\n\n", f);
	ready_list(f);
	fputs("\nA link to dtap named after a command is that command.  'dtap COMMAND --help' tells more.\n", f);
}

static void add_name(void *ctx, const char *name, const char *path)
{
	(void)path;
	similar_add(ctx, name);
}

/* There is no command @name: say so, and which ones are called nearly so; if none is, list all. */
static int unknown(const char *name)
{
	struct similar s = similar_to(name);
	struct arena *a = arena_new();
	bool some = false;

	fprintf(stderr, "dtap: there is no command '%s'", name);
	for (int i = 0; i < NCOMMANDS; i++)
		similar_add(&s, commands[i].name);
	ready_each(a, add_name, &s);
	for (unsigned int i = 0; i < s.n; i++)
		if (s.far[i] <= 2 && s.far[i] + 1 < strlen(name)) {
			fprintf(stderr, "%s'%s'", some ? " or " : "; did you mean ", s.best[i]);
			some = true;
		}
	fputs(some ? "?\n" : "\n", stderr);
	if (!some)
		usage(stderr);
	arena_free(a);
	return CMD_USAGE;
}

/* Memory is exhausted: nothing here may allocate. */
static void out_of_memory(void)
{
	static const char message[] = "dtap: out of memory\n";

	if (write(STDERR_FILENO, message, sizeof(message) - 1) < 0)
		_exit(CMD_ERROR);
	_exit(CMD_ERROR);
}

static int run(const char *name, int argc, char **argv)
{
	const struct command *c = find(name);

	if (c)
		return c->run(argc, argv);
	if (argc < 2) {
		usage(stderr);
		return CMD_USAGE;
	}
	if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "help")) {
		usage(stdout);
		return CMD_OK;
	}
	if (!strcmp(argv[1], "--version")) {
		puts("dtap " DTAP_VERSION);
		return CMD_OK;
	}
	c = find(argv[1]);
	if (!c && ready_is(argv[1]))
		return ready_main(argc - 1, argv + 1);
	return c ? c->run(argc - 1, argv + 1) : unknown(argv[1]);
}

/* Who can write the program that root runs has root's rights. */
static bool is_safe_for_root(const char *name)
{
	char path[PATH_MAX], what[PATH_MAX];
	ssize_t n;

	if (geteuid())
		return true;
	n = readlink("/proc/self/exe", path, sizeof(path) - 1);
	path[n < 0 ? 0 : n] = '\0';
	if (n <= 0 || !self_is_writable(path, what, sizeof(what)))
		return true;
	fprintf(stderr, "%s: refused for root: others can write %s: chmod go-w it, or install dtap\n", name, what);
	return false;
}

/* Has who reads the output closed it?  An earlier write that failed for that has left no errno. */
static bool reader_is_gone(void)
{
	struct pollfd p = { .fd = STDOUT_FILENO };

	return poll(&p, 1, 0) > 0 && p.revents & POLLERR;
}

int main(int argc, char **argv)
{
	const char *name = argc > 0 ? strrchr(argv[0], '/') : NULL;
	int code;

	oom_set_handler(out_of_memory);
	name = name ? name + 1 : argc > 0 ? argv[0] : "dtap";
	code = is_safe_for_root(name) ? run(name, argc, argv) : CMD_ERROR;
	errno = 0;
	if (!fflush(stdout) && !ferror(stdout))
		return code;
	if (errno != EPIPE && !reader_is_gone())
		fprintf(stderr, "%s: failed to write the output%s%s\n", name, errno ? ": " : "",
			errno ? strerror(errno) : "");
	return code ? code : CMD_ERROR;
}
