/*
 * dtrace(1): options and messages around the library.
 */
#include "cmd/cmd.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/arena.h"
#include "cmd/dtrace_opts.h"
#include "cmd/header.h"
#include "dtap.h"

/* Messages go to standard error; results to standard output or a file. */
static void message(void *ctx, enum dtap_level level, const char *text)
{
	(void)ctx;
	(void)level;
	fputs(text, stderr);
}

/* Open the script's output.  The descriptor, or -1 after a message. */
static int open_output(const struct dtrace_opts *o)
{
	int fd = o->output ? open(o->output, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666) : dup(STDOUT_FILENO);

	if (fd < 0)
		fprintf(stderr, "dtrace: failed to open %s for output: %s\n", o->output ? o->output : "standard output",
			strerror(errno));
	return fd;
}

/* Enable the probes and run to the end.  The exit code. */
static int run(struct dtap *t, const struct dtrace_opts *o)
{
	int fd = open_output(o), e;

	if (fd < 0)
		return CMD_ERROR;
	dtap_output(t, fd);
	e = dtap_enable(t);
	if (!e && o->mode == DTRACE_RUN)
		e = dtap_run(t);
	if (close(fd) && !e)
		e = -errno;
	return e ? CMD_ERROR : o->mode == DTRACE_RUN ? dtap_status(t) : CMD_OK;
}

static int trace(struct dtap *t, const struct dtrace_opts *o)
{
	if (!o->nprogs && o->mode == DTRACE_COMPILE)
		return CMD_OK;		/* nothing to compile is no error */
	if (!o->nprogs) {
		fputs("dtrace: no probes specified\n", stderr);
		return CMD_USAGE;
	}
	dtap_block_signals();
	if (dtap_parse(t) || dtap_check(t) || dtap_translate(t))
		return CMD_ERROR;
	if (o->verbose) {
		fputs(dtap_text(t, DTAP_STABILITY), stdout);
		fflush(stdout);
	}
	return o->mode == DTRACE_COMPILE ? CMD_OK : run(t, o);
}

/* Write all of @text.  EPIPE, from a reader that has closed the pipe, is not reported. */
static int write_text(int fd, const char *text)
{
	size_t len = strlen(text), done = 0;
	ssize_t n = 0;

	while (done < len && (n >= 0 || errno == EINTR)) {
		n = write(fd, text + done, len - done);
		done += n > 0 ? (size_t)n : 0;
	}
	if (n >= 0)
		return CMD_OK;
	if (errno != EPIPE)
		fprintf(stderr, "dtrace: failed to write the list: %s\n", strerror(errno));
	return CMD_ERROR;
}

/* -l: list all probes, or, with a target or a script, what these describe. */
static int list(struct dtap *t, const struct dtrace_opts *o)
{
	size_t missing;
	const char *text;
	int fd, e;

	dtap_block_signals();
	if (dtap_parse(t))
		return CMD_ERROR;
	fd = open_output(o);
	if (fd < 0)
		return CMD_ERROR;
	text = dtap_list(t, o->verbose, &missing);
	e = write_text(fd, text);
	close(fd);
	return e || missing ? CMD_ERROR : CMD_OK;
}

/* -V; with -v also where a script would run: the given one (it is not run), or any script. */
static int version(struct dtap *t, const struct dtrace_opts *o)
{
	printf("dtrace: D %s\n", dtap_language_version(DTAP_D));	/* scripts read this line */
	if (o->verbose || o->full)
		printf("This is dtap %s\n", dtap_version());
	if (!o->verbose)
		return CMD_OK;
	fflush(stdout);
	dtap_set(t, "showplace", NULL);
	if (o->nprogs)
		return trace(t, o);
	fprintf(stderr, "# dtrace: %s\n", dtap_text(t, DTAP_PLACES));
	return CMD_OK;
}

static int dispatch(struct dtap *t, const struct dtrace_opts *o)
{
	switch (o->mode) {
	case DTRACE_HELP:
		dtrace_opts_help();
		return CMD_OK;
	case DTRACE_VERSION:
		return version(t, o);
	case DTRACE_LIST:
		return list(t, o);
	case DTRACE_RUN:
	case DTRACE_COMPILE:
		return trace(t, o);
	}
	return CMD_USAGE;
}

static int trace_or_list(int argc, char **argv)
{
	struct dtap_conf conf = { .size = sizeof(conf), .language = DTAP_D, .message = message };
	struct dtap *t = dtap_new(&conf);
	struct dtrace_opts o;
	int e;

	if (!t) {
		fputs("dtrace: out of memory\n", stderr);
		return CMD_ERROR;
	}
	e = dtrace_opts_parse(&o, t, argc, argv);
	if (!e)
		e = dispatch(t, &o);
	dtrace_opts_fini(&o);
	dtap_free(t);
	return e;
}

int cmd_dtrace(int argc, char **argv)
{
	/* Check this first: build systems call -h and -G with arguments of other dtraces, which only they accept. */
	return header_asked(argc, argv) ? header_main(argc, argv) : trace_or_list(argc, argv);
}
