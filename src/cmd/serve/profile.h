/*
 * Profiles of one script: rows of its aggregations whose key has a stack become, for each period, profiles for pprof.
 *
 * Of a ready-made command that counts a tree all its aggregations are one profile; of a script each count() and sum() is one,
 * whose values have the aggregation's name.  What a period has is what rows have grown by since the reading before, so that all
 * profiles together are what the script has counted: nothing is there twice, and what an output has no room for is in the next
 * one.
 *
 * There is a profile for each set of processes with the same labels (labels.h), if the key has the process, else one for all.
 * A profile is an item (item.h) with the variables script, hash, host, type (of scripts: the aggregation), from and until (Unix
 * time), run and number (they name it: what comes twice has the same), unit, container, interpreter, and the labels of the
 * configuration.  The same are comments in the profile.
 */
#ifndef DTAP_CMD_SERVE_PROFILE_H
#define DTAP_CMD_SERVE_PROFILE_H

#include <stdint.h>

#include "cmd/serve/family.h"

struct output;
struct serve_config;

struct profiles;

/* @config and @script must live until profiles_show() or its end; @now_ns: the time of day.  NULL: out of memory. */
struct profiles *profiles_new(const struct serve_config *config, const struct serve_script *script, families_process_fn *process,
			      void *ctx, uint64_t now_ns);
void profiles_free(struct profiles *p);		/* accepts NULL */

/* The same run is another configuration's from now on. */
void profiles_show(struct profiles *p, const struct serve_config *config, const struct serve_script *script);

/* A new reading begins; add each row.  add returns 0 or -ENOMEM. */
void profiles_begin(struct profiles *p);
int profiles_add(struct profiles *p, const struct dtap_row *row);

/* The reading is whole: give profiles up to @now_ns to @output.  How many it has taken. */
uint64_t profiles_put(struct profiles *p, struct output *output, uint64_t now_ns);

#endif
