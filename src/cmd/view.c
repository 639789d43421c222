/*
 * dtap view: opens a picture with the program that the desktop has for it, by xdg-open(1), or prints its path where there is
 * no display.
 */
#include "cmd/cmd.h"

#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/child.h"
#include "cmd/help.h"
#include "cmd/ready/output.h"

static const char help[] =
	"usage: dtap view FILE\n"
	"\n"
	"Open a flame graph, FILE.html or FILE.svg, as the desktop does (xdg-open).  Without a display, and for root,\n"
	"its path is printed.\n"
	"\n"
	"  -h, --help        this text\n";

static bool is_picture(const char *path)
{
	size_t n = strlen(path);

	return (n > 5 && !strcmp(path + n - 5, ".html")) || (n > 4 && !strcmp(path + n - 4, ".svg"));
}

/* Write the file's absolute path to @real.  0, or the exit code after a message. */
static int find(const char *path, char real[static PATH_MAX])
{
	const char *what = ready_output_what(path);
	struct stat st;

	if (!realpath(path, real) || stat(real, &st) || access(real, R_OK)) {
		fprintf(stderr, "dtap view: cannot read %s: %s\n", path, strerror(errno));
		return CMD_ERROR;
	}
	if (!S_ISREG(st.st_mode)) {
		fprintf(stderr, "dtap view: %s is no file\n", path);
		return CMD_ERROR;
	}
	if (is_picture(real))
		return 0;
	fprintf(stderr, "dtap view: %s is no picture%s%s; dtap record -o FILE.html makes one, dtap diff -o FILE.html one of two "
		"runs\n", path, what ? ", but " : "", what ? what : "");
	return CMD_USAGE;
}

/* Why nothing can be opened, or NULL. */
static const char *obstacle(void)
{
	const char *x = getenv("DISPLAY"), *wayland = getenv("WAYLAND_DISPLAY");

	if (!(x && *x) && !(wayland && *wayland))
		return "there is no display";
	return geteuid() ? NULL : "browsers are not started for root";
}

/* 0, or the exit code after a message. */
static int open_file(char *path)
{
	char program[] = "xdg-open", *argv[] = { program, path, NULL };
	int status, e;
	pid_t pid;

	e = child_spawn(&pid, program, NULL, argv);
	if (e == ENOENT) {
		fprintf(stderr, "# dtap view: there is no xdg-open: open this in a browser\n");
		puts(path);
		return CMD_OK;
	}
	if (e) {
		fprintf(stderr, "dtap view: cannot start xdg-open: %s\n", strerror(e));
		return CMD_ERROR;
	}
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	if (WIFEXITED(status) && !WEXITSTATUS(status))
		return CMD_OK;
	fprintf(stderr, "dtap view: xdg-open could not open %s (%s %d)\n", path, WIFEXITED(status) ? "status" : "signal",
		WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status));
	return CMD_ERROR;
}

static int view(const char *path)
{
	char real[PATH_MAX];
	const char *why = obstacle();
	int e = find(path, real);

	if (e)
		return e;
	if (!why)
		return open_file(real);
	fprintf(stderr, "# dtap view: %s: open this in a browser\n", why);
	puts(real);
	return CMD_OK;
}

int cmd_view(int argc, char **argv)
{
	static const struct option options[] = { { "help", no_argument, NULL, 'h' }, { 0 } };
	int c = getopt_long(argc, argv, "h", options, NULL);

	if (c != -1)
		return help_or_mistake(c, help);
	return help_has_words(argc, 1, help) ? view(argv[optind]) : CMD_USAGE;
}
