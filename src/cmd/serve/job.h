/*
 * A job: one script that runs as long as the service does, in a thread of its own, since a run of the library belongs to
 * one thread.
 *
 * The thread sleeps until its run has something to do or somebody asks for a reading of its aggregations.  A run that
 * cannot be started is tried again, after longer and longer pauses; one that the script ended with exit() stays ended,
 * and its last reading stays.
 *
 * Functions are called by one thread at a time, but by any.
 */
#ifndef DTAP_CMD_SERVE_JOB_H
#define DTAP_CMD_SERVE_JOB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cmd/serve/prom.h"
#include "dtap.h"

struct dtap_budget;
struct serve_config;
struct serve_script;
struct strbuf;

struct job;
struct output;
struct watchdog;

/* Where events and profiles go; NULL: nowhere. */
struct job_outputs {
	struct output *events, *profiles;
};

/*
 * Start @script of @config, which it uses as well as @outputs.  @watchdog, which must outlive it,
 * watches its thread.  @budget, likewise, is for all jobs.  0 or a negative errno.
 */
int job_start(struct serve_config *config, const struct serve_script *script, struct job_outputs outputs, struct watchdog *watchdog,
	      struct dtap_budget *budget, struct job **ret);

/* Make it end soon; end it and release it, which accepts NULL. */
void job_end(struct job *j);
void job_stop(struct job *j);

/*
 * Show the results as @script of @config says from now on, which has the same identity, and give events and profiles to
 * @outputs; the counts go on.
 */
void job_show(struct job *j, struct serve_config *config, const struct serve_script *script, struct job_outputs outputs);

/* Ask for a reading; then wait for it until @due_ms (now_ms()), and append it, or the one before if it is late. */
void job_ask(struct job *j, enum prom_format format);
void job_take(struct job *j, enum prom_format format, uint64_t due_ms, struct strbuf *out);

/* What it tells about itself; call job_health_fini() afterwards. */
struct job_count {
	char *name;			/* a reason, a kind of loss, a metric */
	uint64_t n, over;		/* over: of a metric, rows beyond the bound */
};

struct job_counts {
	struct job_count *v;
	size_t n, cap;
};

struct job_health {
	const char *host, *hash;	/* the caller's to fill in: of the configuration that shows the results */
	bool up;			/* the script runs */
	uint64_t starts, traced, processes;	/* traced: processes so far; processes: now */
	uint64_t events;		/* records that were given to the output */
	uint64_t profiles;		/* likewise */
	uint64_t late;			/* readings that were not there in time */
	uint64_t begun;			/* may have begun before they were traced */
	uint64_t unseen;		/* named python, and ended before anybody could look */
	struct dtap_cost cost;		/* of its run, at the last reading */
	struct job_counts refused, lost, series;
};

void job_health(struct job *j, struct job_health *h);
void job_health_fini(struct job_health *h);

/* Compile the script, to see whether it is right; messages go to standard error.  0 or a negative errno. */
int job_check(const struct serve_config *config, const struct serve_script *script);

#endif
