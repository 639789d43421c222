/*
 * stap's passes 3 to 5: from the checked script to its run.
 */
#ifndef DTAP_CMD_STAP_RUN_H
#define DTAP_CMD_STAP_RUN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/strbuf.h"
#include "out/sink.h"
#include "session/options.h"

struct arena;
struct diag;
struct points;
struct probe_set;
struct session;
struct stap_msg;
struct stap_opts;
struct stp;
struct stp_code;
struct stp_prog;
struct supply;
struct target;

struct stap_program {
	struct arena *arena;
	const struct stap_opts *o;
	struct diag *diag;
	struct stap_msg *msg;
	struct stp *stp;
	struct stp_prog *prog;
	struct points *points;
	struct probe_set *probes;

	struct stp_code *code;		/* the rest is stap_run.c's */
	struct options set;
	struct supply *supply;
	uint32_t *pids;			/* the processes that the agent was brought to */
	size_t npids, pids_cap;
	struct strbuf agent;		/* the path of the agent's object */
	struct target *target;		/* of -c */
	struct session *session;
	struct out_sink out;
	const char *file;		/* of -o, dates put in; NULL: standard output */
	unsigned int files;		/* -S: begun so far */
	int ready_fd;			/* -F: where the parent waits; else -1 */
};

/* The session's options from stap's, first of all.  0, or 1 after a message on standard error. */
int stap_set_options(struct stap_program *p);

/*
 * Start the command of -c, if there is one, and hold it: its process id, 0 without, or -1 after a message on standard
 * error.  What can block signals is blocked from then on.
 */
int stap_hold(struct stap_program *p);

/* Does the script run inside of the traced processes (--place), with all markers from the agent? */
bool stap_in_target(const struct stap_program *p);

/* For struct points_conf: let the command go on to its next exec. */
bool stap_next_image(void *program);

/* Lower.  0, or -EINVAL: reported in the diag. */
int stap_translate(struct stap_program *p);

/* Print the intermediate code, as -p3 does. */
void stap_show_code(const struct stap_program *p);

/* Make bytecode, load it and arm the probes.  0, or 1 or a negative errno after a message on standard error. */
int stap_load(struct stap_program *p);

/* From the begin probes to the end probes: the exit code. */
int stap_run(struct stap_program *p);

/* Take everything down; what was not loaded as well. */
void stap_unload(struct stap_program *p);

#endif
