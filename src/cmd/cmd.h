/*
 * The commands of dtap: one file each, listed in commands.def.
 *
 * A command parses its options, words its messages and calls the library; whatever other callers of the library
 * could use belongs elsewhere.  Only commands exit or write to standard error.
 */
#ifndef DTAP_CMD_CMD_H
#define DTAP_CMD_CMD_H

/* dtrace(1)'s exit codes; an exit() action's status is the command's. */
enum { CMD_OK = 0, CMD_ERROR = 1, CMD_USAGE = 2 };

/* Each takes its own name as argv[0] and returns the exit code. */
#define COMMAND(name, what) int cmd_##name(int argc, char **argv);
#include "cmd/commands.def"
#undef COMMAND

#endif
