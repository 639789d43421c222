/*
 * The text of metrics: Prometheus' format 0.0.4, and OpenMetrics 1.0.
 *
 * They differ in the names of counters (in OpenMetrics the family of x_total is x), in the end (# EOF), and in histograms
 * without a sum, which have no _count in OpenMetrics.  Labels are "a="1",b="2"", as prom_label() makes them: valid UTF-8,
 * escaped.
 */
#ifndef DTAP_CMD_SERVE_PROM_H
#define DTAP_CMD_SERVE_PROM_H

#include <stdbool.h>
#include <stdint.h>

struct strbuf;

enum prom_format { PROM_TEXT, PROM_OPENMETRICS, PROM_FORMATS };
enum prom_type { PROM_COUNTER, PROM_GAUGE, PROM_SUMMARY, PROM_HISTOGRAM };

/* For the header Content-Type. */
const char *prom_content_type(enum prom_format format);

/* The lines before a metric's samples.  @name is without "_total", which counters get. */
void prom_head(struct strbuf *out, enum prom_format format, const char *name, enum prom_type type, const char *help);

/* Append a label to @labels. */
void prom_label(struct strbuf *labels, const char *name, const char *value);

/* "NAME SUFFIX {LABELS}" without the value; @labels may be "". */
void prom_sample(struct strbuf *out, const char *name, const char *suffix, const char *labels);

/* " VALUE\n": an integer, multiplied by @scale unless that is 0. */
void prom_value(struct strbuf *out, uint64_t value, bool is_signed, double scale);

/* A number as the value of the label "le": "3.0", "1.023e-06". */
void prom_bound(struct strbuf *out, double bound);

/* The end of everything. */
void prom_end(struct strbuf *out, enum prom_format format);

#endif
