/*
 * The folder of this code, from which its other files are found.
 */
#ifndef DTAP_BASE_SELF_H
#define DTAP_BASE_SELF_H

#include <stdbool.h>
#include <stddef.h>

/*
 * The folder, ending in a slash, of the shared library that contains this code, or else of the running program.
 * False: it is not known, or @size is too small.
 */
bool self_dir(char *buf, size_t size);

#endif
