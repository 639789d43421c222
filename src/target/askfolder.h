/*
 * The folder in which tracers listen for those that ask (abi/ask.h): guarded, of this tracer's user, on a file system that
 * forgets it at the next start of the machine.
 */
#ifndef DTAP_TARGET_ASKFOLDER_H
#define DTAP_TARGET_ASKFOLDER_H

#include <stdbool.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "abi/ask.h"
#include "base/guarded.h"

/* A socket has a name that begins so until it listens: one with a final name that refuses connections is a dead tracer's. */
#define ASKFOLDER_NEW ".ask-"

void askfolder_path(char path[ABI_ASK_PATH]);

/*
 * Open the folder, which is made if it is not there.  0; -EPERM, -ENOTDIR: others can write there, or it is no folder; -ENOENT:
 * it was removed meanwhile, or there is none above it; others as open(2).  guarded_close() is the caller's, also of a failure.
 */
int askfolder_open(struct guarded *ret);

/* Remove it, unless there is something in it. */
void askfolder_remove(void);

/* The address of the socket @name, which is cut after 60 characters, in the folder @path. */
socklen_t askfolder_address(struct sockaddr_un *to, const char *path, const char *name);

/* Does nobody listen on the socket @name? */
bool askfolder_is_dead(const char *path, const char *name);

#endif
