/*
 * Metrics of one script: rows of its aggregations (dtap_row) become families of series.
 *
 *	count, sum			counter (sum: or gauge)
 *	min, max			gauge
 *	avg, stddev			summary: _sum and _count
 *	quantize, lquantize, llquantize	histogram, without _sum, which these do not keep
 *
 * Keys become labels.  Rows whose labels are equal, since a key was left out, are added up.  The number of series of a
 * family is bounded: those that were first stay, the larger ones of a reading first; the rest is added up in one series
 * whose labels are all "(other)", so that sums stay right.
 */
#ifndef DTAP_CMD_SERVE_FAMILY_H
#define DTAP_CMD_SERVE_FAMILY_H

#include <stddef.h>

#include "cmd/serve/prom.h"

struct dtap_row;
struct serve_script;
struct strbuf;

struct families;

/* @script must outlive it. */
struct families *families_new(const struct serve_script *script);
void families_free(struct families *f);			/* accepts NULL */

/* A new reading: begin, add each row, end.  add returns 0 or -ENOMEM. */
void families_begin(struct families *f);
int families_add(struct families *f, const struct dtap_row *row);
int families_end(struct families *f);

/* Append the last reading. */
void families_write(const struct families *f, enum prom_format format, struct strbuf *out);

/* The number of families; the name of number @i, its series, and the rows of the last reading for which there was none. */
size_t families_count(const struct families *f);
const char *families_name(const struct families *f, size_t i, size_t *series, size_t *over);

#endif
