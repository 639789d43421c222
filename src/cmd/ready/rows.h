/*
 * Rows of a table: collected, sorted, and printed as text, JSON or CSV.
 *
 * Cells are copied.  A column is as wide as its widest cell; on a terminal text that does not fit is cut, beginning
 * with the widest column.
 */
#ifndef DTAP_CMD_READY_ROWS_H
#define DTAP_CMD_READY_ROWS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "cmd/ready/head.h"
#include "cmd/ready/run.h"
#include "dtap.h"

struct ready_rows {
	const struct ready_column *columns;
	size_t ncolumns;
	struct dtap_value *cells;	/* ncolumns for each row; texts are on the heap */
	size_t n, cap;
};

/* Add a row of @cells, ncolumns of them.  0 or -ENOMEM. */
int ready_rows_add(struct ready_rows *rows, const struct dtap_value *cells);

/* Sort by @column, largest first, and equal rows by all cells; @column is ncolumns: by all cells alone. */
void ready_rows_sort(struct ready_rows *rows, size_t column);

/* Print at most @limit rows (0: all) in the format of @r to @r->out. */
void ready_rows_print(const struct ready_rows *rows, struct ready_run *r, size_t limit);

/* Remove all rows but the first @n. */
void ready_rows_cut(struct ready_rows *rows, size_t n);

/* Remove all rows. */
void ready_rows_clear(struct ready_rows *rows);
void ready_rows_fini(struct ready_rows *rows);

/*
 * A line ends here: write what is buffered before it fills the buffer, so that the lines of a traced command, whose output
 * goes to the same pipe, come between lines and not within one.  write(2) is whole up to PIPE_BUF bytes.
 */
void ready_line_end(FILE *out);

/* Print one row or the titles in another format. */
void ready_row_json(const struct ready_column *columns, size_t n, const struct dtap_value *cells, FILE *out);
void ready_row_csv(const struct ready_column *columns, size_t n, const struct dtap_value *cells, FILE *out);
void ready_titles_csv(const struct ready_column *columns, size_t n, FILE *out);

#endif
