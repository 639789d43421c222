/*
 * SystemTap's run: what stp.c (the passes that read and check scripts) and stp_run.c (from there to the session) share.
 */
#ifndef DTAP_LIB_STP_RUN_H
#define DTAP_LIB_STP_RUN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/lib.h"
#include "lib/stp_msg.h"
#include "stp/stp.h"

struct points;
struct stp_code;
struct stp_tapset;

struct stp_run {
	struct stp_msg msg;
	struct stp_env env;
	struct stp *stp;
	struct stp_tapset *tapset;
	const char *name;		/* the main script's */
	struct points *points;
	struct stp_prog *prog;
	struct stp_code *code;
	uint32_t *pids;			/* the processes that have the agent */
	size_t npids, pids_cap;
	struct strbuf agent;		/* the path of the agent's object */
};

static inline struct stp_run *stp_run_of(const struct dtap *t)
{
	return t->state;
}

/* The process of -x, or 0. */
static inline pid_t stp_pid(const struct dtap *t)
{
	return t->npids ? t->pids[0] : 0;
}

/* Start the command, if there is one, and hold it. */
int stp_hold(struct dtap *t);

/* Does the script run inside the traced processes (option place), with all markers supplied by the agent? */
bool stp_in_target(const struct dtap *t);

/* For struct points_conf; @t: the struct dtap.  Run the command to its next exec.  False: it has none. */
bool stp_next_image(void *t);

/* Functions of struct lib_language. */
int stp_translate(struct dtap *t);
int stp_enable(struct dtap *t, struct session_conf *conf);

#endif
