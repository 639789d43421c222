/*
 * Which processes a rule selects, by what /proc says of them at this moment.
 *
 * A process says itself what its command line and its environment are, so a rule selects what to look at; it protects
 * nothing.
 */
#ifndef DTAP_CMD_SERVE_RULE_H
#define DTAP_CMD_SERVE_RULE_H

#include <stdbool.h>
#include <sys/types.h>

struct serve_rule;

/* False also for a process that has ended. */
bool rule_selects(const struct serve_rule *rule, pid_t pid);

#endif
