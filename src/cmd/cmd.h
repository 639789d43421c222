/*
 * The commands of dtap: one file each, and the table that finds them (commands.def).
 *
 * A command parses its options, words its messages and calls the library; what a library caller would want
 * too belongs elsewhere.  Only here does dtap exit or write to standard error.
 */
#ifndef DTAP_CMD_CMD_H
#define DTAP_CMD_CMD_H

/* dtrace(1)'s exit codes; an exit() action's status is the command's. */
enum { CMD_OK = 0, CMD_ERROR = 1, CMD_USAGE = 2 };

#define DTAP_VERSION "0.1.0"

struct arena;

/* The installed folder share/dtap/WHAT, or that of the source tree that this was built in; NULL: there is none. */
const char *cmd_share(struct arena *a, const char *what);

/* Ctrl-C and its like end the session in good order: it reads them from a descriptor.  So does an output nobody reads. */
void cmd_block_signals(void);

/* Each takes its own name as argv[0] and returns the exit code. */
#define COMMAND(name, what) int cmd_##name(int argc, char **argv);
#include "cmd/commands.def"
#undef COMMAND

#endif
