/*
 * The folder of this code, from which its other files are found, and whether others can change them.
 */
#ifndef DTAP_BASE_SELF_H
#define DTAP_BASE_SELF_H

#include <stdbool.h>
#include <stddef.h>

struct stat;

/*
 * The folder, ending in a slash, of the shared library that contains this code, or else of the running program.
 * False: it is not known, or @size is too small.
 */
bool self_dir(char *buf, size_t size);

/*
 * The path @path, or the folder that it is in, can be written by others than root and its owner: *what is then the one
 * of them, copied to @buf.  The group that is 0 or that has the owner's number (a user's own group) is not of others;
 * in a folder with the sticky bit others cannot replace files.  A path that is not there is nobody's.
 */
bool self_is_writable(const char *path, char *buf, size_t size);

/* Can others than root and its owner write to what @st is of?  As above, without the folder. */
bool self_is_others(const struct stat *st);

#endif
