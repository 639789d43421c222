/*
 * A guarded folder: what is in it was put there by its owner or by root, and by nobody else.
 *
 * The folder and every folder above it, up to the process's root, belong to root or to the owner, and others cannot write to
 * them; none is reached by a symbolic link.  So its path leads to this folder for as long as root and the owner leave it there,
 * and a name in it is what one of them has made.  Ids are those that the process's user namespace shows: what belongs to a user
 * who has no id there is nobody's, and no folder is guarded.
 *
 * Used by the agent inside traced programs: no memory is allocated, errno is kept, and of the C library only syscall(2) is
 * called.
 */
#ifndef DTAP_BASE_GUARDED_H
#define DTAP_BASE_GUARDED_H

#include <stdbool.h>
#include <stdint.h>

struct stat;

struct guarded {
	int fd;			/* of the folder, O_PATH and close-on-exec; owned */
	uint32_t owner;
};

/*
 * Open the folder @path, absolute and without "." and "..", of user @owner.  0; -EPERM: it is not guarded; -ENOTDIR: a part
 * of it is no folder, or a symbolic link; others as open(2).  A folder that is not there costs one call.
 */
int guarded_open(const char *path, uint32_t owner, struct guarded *ret);
void guarded_close(struct guarded *g);	/* accepts one that is closed */

/* Can only @owner and root write to what @st is of? */
bool guarded_is(const struct stat *st, uint32_t owner);

#endif
