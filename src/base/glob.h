/* SPDX-License-Identifier: MIT */
/* Patterns of names, as in probe descriptions, independent of the locale.  The agent has them, too. */
#ifndef DTAP_BASE_GLOB_H
#define DTAP_BASE_GLOB_H

#include <stdbool.h>

/*
 * Does @text match @pattern (*, ?, [a-z], [!a-z], \x)?  A character is one of UTF-8, or a byte that is none.  An empty
 * pattern matches anything.
 */
bool glob_match(const char *pattern, const char *text);

/* Is @pattern empty, or does it contain a special character? */
bool glob_is(const char *pattern);

#endif
