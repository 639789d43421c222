/*
 * May a stopped thread call the dynamic loader, where it is?
 */
#ifndef DTAP_TARGET_SAFEPOINT_H
#define DTAP_TARGET_SAFEPOINT_H

#include "target/chain.h"

/* NULL: it may.  Else why not, as the end of "its thread ...". */
const char *safepoint_refusal(const struct guest *g, pid_t tid, const struct remote_thread *t);

#endif
