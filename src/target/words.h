/*
 * The words of a command line, split as a shell splits them: blanks separate, '...' keeps all, "..." keeps
 * all but backslashes before $ ` " \ and newline, a backslash outside of quotes keeps the next character, or
 * joins two lines.  Nothing else is special: no variables, no globbing, no operators, no comments.
 */
#ifndef DTAP_TARGET_WORDS_H
#define DTAP_TARGET_WORDS_H

#include <stdbool.h>
#include <stddef.h>

/*
 * *ret becomes an array of *@n words with NULL behind them; it and the words are one allocation, to be
 * released with free().  -EINVAL: a quote is not closed, or a backslash ends the line; -ENOMEM.
 */
int words_split(const char *line, char ***ret, size_t *n);

/* Does a shell make more of the line than these words: has it operators, variables or patterns outside of quotes? */
bool words_want_shell(const char *line);

#endif
