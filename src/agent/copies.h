/* SPDX-License-Identifier: MIT */
/*
 * Other copies of the agent in this process: preloaded, and loaded by the interpreter from its site-packages folder.
 */
#ifndef DTAP_AGENT_COPIES_H
#define DTAP_AGENT_COPIES_H

#include <stdbool.h>

/* Is another copy mapped?  By the files' names, which begin with "dtap-agent"; false where maps cannot be read. */
bool copies_other(void);

#endif
