/*
 * Starts other programs with default signal settings and with the limit of descriptors that this process was started
 * with (base/file.h).  This process ignores SIGPIPE and blocks and handles other signals, and children of fork and
 * posix_spawn would inherit that.
 */
#ifndef DTAP_BASE_CHILD_H
#define DTAP_BASE_CHILD_H

#include <spawn.h>
#include <sys/types.h>

/*
 * Call this in the child of a fork, before exec: unblocks all signals and sets their default actions, except
 * that an ignored SIGHUP stays ignored, for nohup.  Async-signal-safe.
 */
void child_signals(void);

/*
 * posix_spawnp() with the environment of this process, and with signals as set by child_signals(); @actions may be
 * NULL.  0 or a positive error number, as from posix_spawn.
 */
int child_spawn(pid_t *pid, const char *file, const posix_spawn_file_actions_t *actions, char *const *argv);

#endif
