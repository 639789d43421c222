/*
 * The service's configuration: one YAML file, read by libyaml.
 *
 *	listen: 127.0.0.1:9464
 *	outputs:
 *	  store: { clickhouse: "http://127.0.0.1:8123", spool: /var/lib/dtap/store }
 *	rules:
 *	  shop: { unit: "shop-*.service", environment: { STAGE: "prod*" } }
 *	scripts:
 *	  calls: { command: calls, rule: shop }
 *	  orders:
 *	    script: /etc/dtap/orders.d
 *	    metrics: { took: { name: shop_order_seconds, labels: [method], scale: 1e-9 } }
 *
 * dtap-serve(1) explains the keys.  Each mistake is reported with file, line and column; what a file says is in memory
 * of the configuration's arena.
 */
#ifndef DTAP_CMD_SERVE_CONFIG_H
#define DTAP_CMD_SERVE_CONFIG_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#include "dtap.h"

struct arena;
struct ready_request;

struct serve_texts {
	const char **v;
	size_t n, cap;
};

struct serve_pair {
	const char *name, *value;
};

struct serve_pairs {
	struct serve_pair *v;
	size_t n, cap;
};

/* Which Pythons: each condition that is given must hold, by one of its patterns. */
struct serve_rule {
	const char *name;
	uid_t *users;
	size_t nusers, users_cap;
	struct serve_texts units, cgroups, commands;
	struct serve_pairs environment;
};

/* Where events go, and profiles: outputs.c. */
enum serve_output_kind { SERVE_FILE, SERVE_PIPE, SERVE_HTTP, SERVE_CLICKHOUSE, SERVE_PPROF, SERVE_FOLDER };

struct serve_output {
	const char *name;
	size_t line, column;
	enum serve_output_kind kind;
	bool has_profiles;		/* they go there, not events */
	const char *target;		/* a path or an address; of SERVE_PPROF with places for variables (item.h) */
	uint64_t size;			/* of a file, before a new one is begun; of a folder, before the oldest are removed */
	unsigned int count;		/* of old files */
	const char *database, *table;
	const char *user, *password, *token;	/* contents, or NULL */
	const char *ca;			/* a file, or NULL */
	const char *spool;		/* a folder, or NULL */
	uint64_t spool_size;
	uint64_t batch;			/* events */
	uint64_t interval_ms;		/* a batch is delivered when its first event is as old; how long profiles are */
	unsigned int timeout_s;		/* of a request */
	const char *identity;		/* equal: the one can go on as the other */
};

enum serve_type { SERVE_BY_FUNCTION, SERVE_COUNTER, SERVE_GAUGE };

/* How an aggregation is shown; members that are NULL or 0 have defaults. */
struct serve_metric {
	const char *aggregation, *name, *help;
	bool has_labels;
	struct serve_texts labels;	/* of the keys in order; "-": the key is left out, rows are added up */
	double scale;			/* values are multiplied by it; 0: they are not */
	enum serve_type type;
	const char *unit;		/* of profiles; NULL: "count" */
};

struct serve_script {
	const char *name;
	size_t line, column;
	const struct serve_rule *rule;	/* NULL: every Python */
	const char *file, *program;	/* one of the three: a script, its text in the configuration ... */
	enum dtap_language language;	/* of file and program */
	const struct ready_request *command;	/* ... or a ready-made command */
	struct serve_pairs options;	/* of dtap_set() */
	struct serve_texts arguments;
	struct serve_metric *metrics;
	size_t nmetrics, metrics_cap;
	size_t series;			/* at most that many of each metric */
	const struct serve_output *output;	/* of events; NULL: they go nowhere */
	const struct serve_output *profiles;	/* where stacks go; NULL: nowhere */
	struct serve_texts fields;	/* names of their values, in order */
	const char *hash;		/* SHA-256 of the script's text */
	const char *identity;		/* equal: a run of the one can go on as a run of the other */
};

struct serve_config {
	struct arena *arena;
	atomic_uint users;		/* jobs go on over a reload, so no single owner knows when it can go */
	const char *path;
	const char *host, *port;	/* host NULL: no HTTP */
	bool listens_elsewhere;		/* not on loopback */
	const char *certificate, *key, *token;	/* contents, or NULL */
	const char *textfile;		/* NULL: none */
	unsigned int watchdog_s;	/* a thread that hangs so long ends the service; 0: none does */
	unsigned int interval_s;
	size_t series;			/* of scripts that do not say it */
	const char *machine;		/* the label host */
	const char *budget;		/* of dtap_budget_new() */
	struct serve_pairs labels;	/* of events: names, and variables of the processes' environment */
	struct serve_output *outputs;
	size_t noutputs, outputs_cap;
	struct serve_rule *rules;
	size_t nrules, rules_cap;
	struct serve_script *scripts;
	size_t nscripts, scripts_cap;
};

/* Read @path.  NULL: after messages on @err, a line for each mistake. */
struct serve_config *serve_config_read(const char *path, FILE *err);

/* The same from @len bytes of @text, which messages call @path. */
struct serve_config *serve_config_parse(const char *path, const char *text, size_t len, FILE *err);

/* By any thread. */
struct serve_config *serve_config_use(struct serve_config *c);
void serve_config_drop(struct serve_config *c);		/* accepts NULL */

/* The settings of aggregation @name, or NULL. */
const struct serve_metric *serve_metric(const struct serve_script *s, const char *name);

#endif
