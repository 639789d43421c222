/*
 * The D script that a ready-made command is, with the functions, processes and options of its command line.
 *
 * Functions return 0, or the exit code after a message on standard error.
 */
#ifndef DTAP_CMD_READY_SCRIPT_H
#define DTAP_CMD_READY_SCRIPT_H

struct dtap;
struct ready_request;

/* Print it to standard output. */
int ready_script_print(const struct ready_request *q);

/* Add it to @t, with its options and arguments.  Which processes it is for, @t is told elsewhere (dtap_select()). */
int ready_script_add(const struct ready_request *q, struct dtap *t);

#endif
