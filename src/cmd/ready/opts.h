/*
 * Parser of a ready-made command's command line.  It carries out nothing.
 */
#ifndef DTAP_CMD_READY_OPTS_H
#define DTAP_CMD_READY_OPTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "cmd/ready/head.h"

struct ready_request {
	struct ready_head head;
	const char *command;
	pid_t *pids;
	size_t npids, pids_cap;
	bool all, by_user;
	uid_t user;
	uint64_t duration_ns, interval_ns;	/* 0: none */
	size_t rows;				/* 0: any number */
	const char *output;			/* NULL: standard output */
	bool json, script, help;
	const struct ready_option *variant;	/* that was asked for, or NULL */
	const char *const *functions;
	size_t nfunctions;
	struct arena *arena;
};

/*
 * Parse @argv of the command whose file was read into @r->head; @r->arena is set, the rest is zero.  0, or the exit
 * code after a message on standard error.
 */
int ready_opts_parse(struct ready_request *r, int argc, char **argv);

/* The value of one of the command's own options: as given, or the default. */
static inline const char *ready_value(const struct ready_option *o)
{
	return o->value ? o->value : o->preset;
}

/* The text of --help on standard output. */
void ready_opts_help(const struct ready_head *h);

#endif
