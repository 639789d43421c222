/*
 * What the service may do: of root's capabilities (capabilities(7)) only those of privileges.def, for all its threads, and
 * never more.
 */
#ifndef DTAP_CMD_SERVE_PRIVILEGES_H
#define DTAP_CMD_SERVE_PRIVILEGES_H

/* Give the others up.  While there is one thread.  0 or a negative errno. */
int privileges_drop(void);

#endif
