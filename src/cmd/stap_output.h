/*
 * stap's output: standard output, the file of -o, or with -S or switch_file() a series of files.
 */
#ifndef DTAP_CMD_STAP_OUTPUT_H
#define DTAP_CMD_STAP_OUTPUT_H

#include <stdbool.h>
#include <stdint.h>

struct arena;
struct stap_opts;

struct stap_output {
	const struct stap_opts *o;
	struct arena *arena;
	int fd;				/* -1: not open */
	const char *file;		/* of -o, after strftime(3); NULL: standard output */
	int bulk_fd;			/* -b: FILE_0, and fd is a memfd; else -1 */
	uint32_t sequence;		/* -b: of the next piece */
	bool lost;
	unsigned int files;		/* begun after the first one */
};

/* 0, or a negative errno after a message on standard error. */
int stap_output_open(struct stap_output *out, struct arena *a, const struct stap_opts *o);

/* Call after each write: with -S it starts a new file if the current one is full, and removes the oldest. */
void stap_output_written(struct stap_output *out);

/* 0, or a negative errno after a message: output was lost.  Accepts one that is not open. */
int stap_output_close(struct stap_output *out);

#endif
