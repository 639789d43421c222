/*
 * dtrace's command line, taken apart: which programs, which target, which mode.  Nothing is carried out.
 * One with -h or -G is header.h's.
 *
 * Source: dtrace(1) of illumos and of Oracle Linux, "OPTIONS" and "OPERANDS".
 */
#ifndef DTAP_CMD_DTRACE_OPTS_H
#define DTAP_CMD_DTRACE_OPTS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "cmd/cpp_args.h"

struct arena;
struct options;

/* One -s, -P, -m, -f, -n or -i: a program of its own. */
struct dtrace_prog {
	char opt;		/* the option's letter */
	const char *text;	/* -s: the file's name; else the description with its clause */
};

enum dtrace_mode {
	DTRACE_RUN,
	DTRACE_LIST,		/* -l */
	DTRACE_COMPILE,		/* -e */
	DTRACE_VERSION,		/* -V */
	DTRACE_HELP,		/* --help */
};

struct dtrace_opts {
	enum dtrace_mode mode;
	struct dtrace_prog *progs;
	size_t nprogs, progs_cap;
	const char *command;	/* -c, or NULL */
	pid_t *pids;		/* -p */
	size_t npids, pids_cap;
	const char *output;	/* -o, or NULL */
	bool verbose;		/* -v */
	bool print_aggs;	/* -O */
	bool show_source;	/* -S: the program's intermediate code */
	struct cpp_args cpp;
	char **args;		/* macro arguments: args[0] is the script's name */
	int nargs;
	size_t args_cap;
	const char **lib_dirs;	/* -L */
	size_t nlib_dirs, lib_dirs_cap;
};

/*
 * Take @argv apart into @o, whose arrays live in @a, and set options of -b, -q, -w, -x, -Z, -F in @set.  0, or
 * the exit code after a message on standard error.
 */
int dtrace_opts_parse(struct dtrace_opts *o, struct arena *a, struct options *set, int argc, char **argv);

/* The text of --help. */
void dtrace_opts_help(void);

#endif
