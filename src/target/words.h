/*
 * Splitting a command line into words as a shell does: blanks separate words; '...' keeps everything; "..." keeps
 * everything but backslashes before $ ` " \ and newline; a backslash outside quotes keeps the next character, or joins
 * two lines.  Nothing else is special: no variables, no globbing, no operators, no comments.
 */
#ifndef DTAP_TARGET_WORDS_H
#define DTAP_TARGET_WORDS_H

#include <stdbool.h>
#include <stddef.h>

/*
 * *ret becomes an array of *@n words, terminated by NULL; it and the words are one allocation, to be
 * released with free().  -EINVAL: a quote is not closed, or a backslash ends the line; -ENOMEM.
 */
int words_split(const char *line, char ***ret, size_t *n);

/* Would a shell do more than split the line: has it operators or patterns outside quotes, or variables? */
bool words_want_shell(const char *line);

/*
 * What wordexp(3) finds wrong with the line, to complete the sentence "it ...", or NULL.  No command is executed.
 */
const char *words_flaw(const char *line);

#endif
