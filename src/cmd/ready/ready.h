/*
 * Ready-made commands: dtap NAME, where NAME.d is a script with a head (head.h).
 */
#ifndef DTAP_CMD_READY_READY_H
#define DTAP_CMD_READY_READY_H

#include <stdbool.h>
#include <stdio.h>

/* Is there a command of that name? */
bool ready_is(const char *name);

/* Run it: @argv[0] is its name.  Returns the exit code: the traced command's if there is one and nothing failed. */
int ready_main(int argc, char **argv);

/* Print a line "  NAME  SUMMARY" for each command to @f, for dtap --help. */
void ready_list(FILE *f);

#endif
