/*
 * Rows of processes that have ended, added up where all that is shown of their processes is the same.
 *
 * A script's rows with a process as a key are as many as processes have come and gone.  When one has ended and its rows have
 * been read, they are put here and forgotten by the script (DTAP_FORGET), so that its memory does not grow with each.  When
 * rows are to be shown otherwise, after a reload, these come first.
 */
#ifndef DTAP_CMD_SERVE_FOLD_H
#define DTAP_CMD_SERVE_FOLD_H

#include <stddef.h>

#include "base/bytemap.h"

struct dtap_row;
struct labels;

/* Zeroed is empty. */
struct folds {
	struct bytemap by_text;
};

/* Add @row, whose key @process is a process with labels @l (NULL: unknown).  0 or -ENOMEM: nothing is added. */
int folds_add(struct folds *f, const struct dtap_row *row, size_t process, const struct labels *l);

/* Call @each for each sum, whose keys are texts but for the process, which is 0, until it does not return 0. */
int folds_each(const struct folds *f, int (*each)(void *ctx, const struct dtap_row *row, const struct labels *l), void *ctx);

/* The names of the labels have changed: what those that have ended had of them is no longer shown. */
int folds_unlabel(struct folds *f);

void folds_fini(struct folds *f);

#endif
