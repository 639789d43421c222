/*
 * An output: where events or profiles go, with a thread that delivers them.
 *
 * Whoever has an event puts it and goes on: what cannot be delivered in time is kept in memory up to a bound, and for a
 * store on disk (spool.h); what goes over is lost and counted.  A store can be told the same batch twice, when its answer
 * did not arrive; it knows events by host, boot, run and sequence.  A number that is missing there is an event that was
 * lost.
 *
 * Of an output of profiles an event is an item (item.h), which is a batch of its own.
 *
 * outputs.c has the kinds.
 */
#ifndef DTAP_CMD_SERVE_OUTPUT_H
#define DTAP_CMD_SERVE_OUTPUT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cmd/serve/event.h"

struct serve_config;
struct serve_output;
struct strbuf;

struct output;

/* Start output @conf of @config, which it uses.  0 or a negative errno.  The caller has the one reference. */
int output_start(struct serve_config *config, const struct serve_output *conf, struct output **ret);

/*
 * References.  The last one ends the output: it tries for a few seconds to deliver what it has, then spools the rest, or
 * says how much is lost.
 */
struct output *output_use(struct output *o);	/* accepts NULL */
void output_drop(struct output *o);		/* accepts NULL */
bool output_is_shared(const struct output *o);

const struct serve_output *output_conf(const struct output *o);
enum event_form output_form(const struct output *o);

/* What an event is known by: the run, and the next number. */
uint64_t output_run(const struct output *o);
uint64_t output_next(struct output *o);

/* By any thread; never waits.  False: there was no room, and the event is counted as lost. */
bool output_put(struct output *o, const struct strbuf *line);

/* The same, but what there is no room for is not lost: the caller has it, and tries again.  -EFBIG: there never will be room. */
int output_offer(struct output *o, const struct strbuf *line);

struct output_health {
	uint64_t events;		/* delivered */
	uint64_t failures;		/* tries that failed */
	uint64_t lost;
	uint64_t waiting, spooled_bytes;	/* events in memory; bytes on disk */
	bool up;			/* the last try succeeded */
};

void output_health(struct output *o, struct output_health *h);

/* --- kinds --------------------------------------------------------------------------------------------- */

enum output_result {
	OUTPUT_DONE,
	OUTPUT_LATER,			/* it is away: try again */
	OUTPUT_REFUSED,			/* it does not take this batch, now or later */
};

struct output_kind {
	const char *name;
	enum event_form form;
	/* 0, or a negative errno with a line in @err; called again later. */
	int (*open)(const struct serve_output *conf, const atomic_ullong *until_ms, void **state, struct strbuf *err);
	/* Deliver @text from *@done on, and move *@done.  If it is not OUTPUT_DONE, @why has a line. */
	enum output_result (*deliver)(void *state, const struct strbuf *text, size_t *done, struct strbuf *why);
	void (*close)(void *state);
};

/* Of enum serve_output_kind. */
extern const struct output_kind output_kinds[];

#endif
