/*
 * Metrics of one script: rows of its aggregations (dtap_row) become families of series.
 *
 *	count, sum			counter (sum: or gauge)
 *	min, max			gauge
 *	avg, stddev			summary: _sum and _count
 *	quantize, lquantize, llquantize	histogram, without _sum, which these do not keep
 *	counter, gauge, stat, hist_log,
 *	hist_linear			of SystemTap's globals: counter, gauge, summary, histogram with _sum unless there are values below 0
 *
 * Keys become labels.  Rows whose labels are equal, since a key was left out, are added up.  The number of series of a
 * family is bounded: those that were first stay, the larger ones of a reading first; the rest is added up in one series
 * whose labels are all "(other)", so that sums stay right.
 *
 * Rows with a stack are no metrics of a script that has profiles (profile.h): they are these.
 *
 * A key that is labelled "process" is a process's number and becomes the labels unit, container, interpreter and those of
 * the configuration (labels.h).  There are ever new processes, so what a row has grown by since the reading before is added
 * to the series of its process, which stays when the process is gone.
 */
#ifndef DTAP_CMD_SERVE_FAMILY_H
#define DTAP_CMD_SERVE_FAMILY_H

#include <stddef.h>
#include <sys/types.h>

#include "cmd/serve/prom.h"

struct dtap_row;
struct labels;
struct serve_pairs;
struct serve_script;
struct strbuf;

struct families;

/* What is known of process @pid; NULL: nothing. */
typedef const struct labels *families_process_fn(void *ctx, pid_t pid);

/*
 * @script, @asked, the configuration's labels, and @folds must outlive it.  It begins with what is in @folds, to which it adds the
 * rows of processes that have ended.
 */
struct folds;
struct families *families_new(const struct serve_script *script, const struct serve_pairs *asked, struct folds *folds,
			      families_process_fn *process, void *ctx);
void families_free(struct families *f);			/* accepts NULL */

/* A new reading: begin, add each row, end.  add returns 0, DTAP_FORGET or -ENOMEM. */
void families_begin(struct families *f);
int families_add(struct families *f, const struct dtap_row *row);
int families_end(struct families *f);

/* Append the last reading. */
void families_write(const struct families *f, enum prom_format format, struct strbuf *out);

/* The number of families; the name of number @i, its series, and the rows of the last reading for which there was none. */
size_t families_count(const struct families *f);
const char *families_name(const struct families *f, size_t i, size_t *series, size_t *over);

#endif
