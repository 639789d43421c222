/*
 * Parser of stap's command line.  It carries out nothing.
 *
 * Source: stap(1), "OPTIONS" and "ARGUMENTS".
 */
#ifndef DTAP_CMD_STAP_OPTS_H
#define DTAP_CMD_STAP_OPTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct arena;

enum stap_mode {
	STAP_RUN,
	STAP_LIST,		/* -l: probe points */
	STAP_LIST_VARS,		/* -L: with their variables */
	STAP_DUMP_POINTS,	/* --dump-probe-types */
	STAP_DUMP_ALIASES,
	STAP_DUMP_FUNCTIONS,
	STAP_VERSION_MODE,
	STAP_HELP,
};

/* The texts of an option that may be given several times. */
struct stap_texts {
	const char **v;
	size_t n, cap;
};

struct stap_opts {
	enum stap_mode mode;
	unsigned int last_pass;		/* -p: 1 to 5 */
	const char *text;		/* -e; or the point of -l, -L */
	const char *file;		/* FILE or -; NULL with @text */
	struct stap_texts more;		/* -E: further scripts */
	struct stap_texts args;		/* $1, $2 ... */
	struct stap_texts dirs;		/* -I */
	struct stap_texts limits;	/* -D NAME=VALUE, of valid form */
	struct stap_texts globals;	/* -G name=value, likewise */
	const char *command;		/* -c, or NULL */
	pid_t pid;			/* -x, or 0 */
	uint64_t timeout_ns;		/* -T, or 0 */
	const char *output;		/* -o, or NULL; a format of strftime(3) */
	uint64_t max_bytes;		/* -S: of one output file, or 0 */
	unsigned int max_files;		/* -S: kept, or 0 */
	unsigned int bufsize_mb;	/* -s, or 0 */
	unsigned int verbose;
	bool guru, unoptimized, timing, no_warnings, strict_warnings, flight, skip_badvars, keep, bulk;
	bool no_time_limits, no_handler_errors, no_globals, errtags;
	const char *compatible;		/* --compatible, or NULL */
	const char *sysroot;		/* --sysroot, or NULL */
	const char *privilege;		/* --privilege, --unprivileged, or NULL */
	const char *place;		/* --place, or NULL */
};

/* Parse @argv into @o, whose arrays are in @a.  0, or the exit code after a message on standard error. */
int stap_opts_parse(struct stap_opts *o, struct arena *a, int argc, char **argv);

/* The text of --help. */
void stap_opts_help(void);

#endif
