/*
 * Finds ready-made commands: files NAME.d in the user's folder, $XDG_CONFIG_HOME/dtap/commands or
 * ~/.config/dtap/commands, and in dtap's share/commands.  The user's have precedence; files of users other
 * than the caller and root are skipped.
 */
#ifndef DTAP_CMD_READY_FIND_H
#define DTAP_CMD_READY_FIND_H

#include <stdbool.h>

struct arena;

/* The file of the command, or NULL. */
const char *ready_find(struct arena *a, const char *name);

/* The file of a variant of the command whose file is @path (head.h), or NULL. */
const char *ready_find_variant(struct arena *a, const char *path, const char *name);

/* The path of @what in dtap's share folder, or NULL. */
const char *ready_share(struct arena *a, const char *what);

/* Call @each for every command, sorted by name. */
void ready_each(struct arena *a, void (*each)(void *ctx, const char *name, const char *path), void *ctx);

#endif
