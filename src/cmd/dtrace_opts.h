/*
 * Parser of dtrace's command line: scripts, target, mode.  It carries out nothing.  Command lines with -h or -G are
 * parsed by header.h.
 *
 * Source: dtrace(1) of illumos and of Oracle Linux, "OPTIONS" and "OPERANDS".
 */
#ifndef DTAP_CMD_DTRACE_OPTS_H
#define DTAP_CMD_DTRACE_OPTS_H

#include <stdbool.h>
#include <stddef.h>

#include "cmd/cpp_args.h"

struct arena;
struct dtap;

enum dtrace_mode {
	DTRACE_RUN,
	DTRACE_LIST,		/* -l */
	DTRACE_COMPILE,		/* -e */
	DTRACE_VERSION,		/* -V */
	DTRACE_HELP,		/* --help */
};

struct dtrace_opts {
	enum dtrace_mode mode;
	size_t nprogs;		/* the number of options -s, -P, -m, -f, -n and -i */
	bool command;		/* -c was given */
	const char *output;	/* -o, or NULL */
	bool verbose;		/* -v */
	bool full;		/* --version: dtap's version, too */
	struct cpp_args cpp;
	struct arena *arena;
};

/*
 * Parse @argv into @o and the settings of @t.  0, or the exit code after a message on standard error.  Call
 * dtrace_opts_fini() in either case.
 */
int dtrace_opts_parse(struct dtrace_opts *o, struct dtap *t, int argc, char **argv);
void dtrace_opts_fini(struct dtrace_opts *o);

/* The text of --help. */
void dtrace_opts_help(void);

#endif
