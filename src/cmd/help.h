/*
 * The end of reading options, the same in all commands that are no scripts: --help, a mistake, too many words.
 */
#ifndef DTAP_CMD_HELP_H
#define DTAP_CMD_HELP_H

#include <stdbool.h>

/*
 * What getopt_long(3) returned, if it is none of the command's own options: 'h' prints @help; anything else is a mistake,
 * which getopt_long() has told.  Returns the exit code.
 */
int help_or_mistake(int c, const char *help);

/* Are there @n words behind the options?  If not, @help is printed on standard error, and the exit code is CMD_USAGE. */
bool help_has_words(int argc, int n, const char *help);

#endif
