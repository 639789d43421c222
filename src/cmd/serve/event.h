/*
 * The text of an event: a record of a script as a line of JSON.
 *
 *	EVENT_LINE	for people's programs: an object whose member "fields" has the values by name
 *	EVENT_ROW	for ClickHouse's JSONEachRow: the columns of share/clickhouse/schema.sql, where fields are three
 *			arrays: their names, texts, and numbers
 *
 * An event is known everywhere by host, boot, run and sequence.
 */
#ifndef DTAP_CMD_SERVE_EVENT_H
#define DTAP_CMD_SERVE_EVENT_H

#include <stdbool.h>
#include <stdint.h>

struct dtap_record;
struct labels;
struct serve_config;
struct serve_script;
struct strbuf;

enum event_form { EVENT_LINE, EVENT_ROW };

struct event {
	const struct serve_config *config;
	const struct serve_script *script;
	const struct labels *labels;	/* of its process; NULL: unknown */
	const char *boot;		/* the kernel's boot_id */
	uint64_t run;
	uint64_t (*sequence)(void *ctx);	/* the event's number; called if there is something to tell */
	void *ctx;
	uint64_t wall_off_ns;		/* from CLOCK_MONOTONIC to the time of day */
};

/* Append it with a newline.  False: the record has nothing to tell. */
bool event_write(enum event_form form, const struct event *e, const struct dtap_record *r, struct strbuf *out);

#endif
