/*
 * Messages in stap's form:
 *
 *	semantic error: unresolved type : identifier 'x' at a.stp:1:21
 *	        source: probe begin { print(x) }
 *	                                    ^
 */
#ifndef DTAP_LIB_STP_MSG_H
#define DTAP_LIB_STP_MSG_H

#include <stdbool.h>
#include <stddef.h>

#include "lang/diag.h"

struct stp_msg {
	void (*print)(void *ctx, enum diag_level level, const char *text);	/* gets the lines */
	void *ctx;
	bool no_warnings, errtags;
	const struct source **scripts;	/* the user's: warnings about the tapset are not shown; NULL: all are */
	size_t nscripts;
	bool all;		/* print similar messages, too (-v) */
	const struct source *last;	/* the file named last: the next message about it does not name it again */
	size_t shown;		/* messages of the diag that have been printed */
	unsigned int similar_errors, similar_warnings;	/* suppressed */
	unsigned int warnings;	/* printed or suppressed */
};

/* Print what was reported since the last time. */
void stp_msg_print(struct stp_msg *m, const struct diag *d);

/* At the end: print how many messages were suppressed as similar. */
void stp_msg_end(const struct stp_msg *m);

/* A warning without a position: "WARNING: TEXT". */
void stp_msg_warn(struct stp_msg *m, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#endif
