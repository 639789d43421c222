/*
 * A user on a command line: a name, or a number.
 */
#ifndef DTAP_CMD_USER_H
#define DTAP_CMD_USER_H

#include <stdbool.h>
#include <sys/types.h>

/* False: there is no such user, and @text is no number. */
bool user_of(const char *text, uid_t *ret);

#endif
