/*
 * The service's metrics about itself and its jobs: health.def.
 */
#ifndef DTAP_CMD_SERVE_HEALTH_H
#define DTAP_CMD_SERVE_HEALTH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cmd/serve/job.h"
#include "cmd/serve/output.h"
#include "cmd/serve/prom.h"

struct strbuf;

struct health {
	bool config_ok;
	uint64_t reloads;
	uint64_t start_ns;		/* now_wall_ns() */
	const char **scripts;		/* names, with the health of each */
	const struct job_health *jobs;
	size_t njobs;
	const char **outputs;		/* names, with the health of each */
	const struct output_health *output_healths;
	size_t noutputs;
};

void health_write(const struct health *h, enum prom_format format, struct strbuf *out);

#endif
