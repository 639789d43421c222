/*
 * Functions of Python by name.  The agent finds them, so any module and function names are accepted as patterns.
 */
#ifndef DTAP_PROBE_PYFUNC_H
#define DTAP_PROBE_PYFUNC_H

#include <stdbool.h>
#include <stdint.h>

#include "lang/desc.h"

/* Is the description's provider "py1234", "py*" or similar? */
bool pyfunc_describes(const struct probe_desc *desc);

/* Write the provider's name for process @pid, or (0) for all, to @text. */
enum { PYFUNC_PROVIDER = 32 };
const char *pyfunc_provider(uint32_t pid, char text[static PYFUNC_PROVIDER]);
#define PYFUNC_ANY "py2147483647"	/* for a process that does not exist yet */

/* Does it describe functions of process @pid? */
bool pyfunc_is_of(const struct probe_desc *desc, uint32_t pid);

#endif
