/*
 * The files that a pattern of the shell's names.
 *
 * As glob(3), but for what that does without memory: of some versions of the C library it frees the names twice.
 */
#ifndef DTAP_BASE_PATHS_H
#define DTAP_BASE_PATHS_H

#include <stdbool.h>
#include <stddef.h>

struct arena;

/*
 * The paths of what is there and matches @pattern, in *ret, in @a: each part of the path by fnmatch(3), a dot at its beginning
 * by a dot alone.  With @braces "{a,b}" stands for either, first those that match with the first.  Otherwise sorted.  What
 * cannot be looked at is left out, and noted (shortage_note()).
 */
size_t paths_matching(struct arena *a, const char *pattern, bool braces, const char ***ret);

#endif
