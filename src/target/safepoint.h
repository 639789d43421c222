/*
 * May a stopped thread call the dynamic loader at its present point?
 */
#ifndef DTAP_TARGET_SAFEPOINT_H
#define DTAP_TARGET_SAFEPOINT_H

#include "target/chain.h"

/* NULL: it may.  Otherwise why not, to complete the sentence "its thread ...". */
const char *safepoint_refusal(const struct guest *g, pid_t tid, const struct remote_thread *t);

/* Was it stopped in a system call in which a thread waits? */
bool safepoint_is_waiting(const struct remote_thread *t);

#endif
