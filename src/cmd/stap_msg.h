/*
 * Messages in stap's form:
 *
 *	semantic error: unresolved type : identifier 'x' at a.stp:1:21
 *	        source: probe begin { print(x) }
 *	                                    ^
 */
#ifndef DTAP_CMD_STAP_MSG_H
#define DTAP_CMD_STAP_MSG_H

#include <stdbool.h>
#include <stddef.h>

#include "lang/diag.h"

struct stap_msg {
	bool no_warnings, errtags;
	const struct source **scripts;	/* warnings about others, the tapset, are not shown; NULL: all are */
	size_t nscripts;
	bool all;		/* similar ones, too (-v) */
	const struct source *last;	/* the file named last: the next message about it does not name it again */
	size_t shown;		/* messages of the diag that have been printed */
	unsigned int similar_errors, similar_warnings;	/* kept back */
	unsigned int warnings;	/* printed or kept back */
};

/* Print what was reported since the last time. */
void stap_msg_print(struct stap_msg *m, const struct diag *d);

/* How many were kept back for being similar: said at the end. */
void stap_msg_end(const struct stap_msg *m);

/* A message that is about no script: "WARNING: TEXT". */
void stap_msg_warn(struct stap_msg *m, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#endif
