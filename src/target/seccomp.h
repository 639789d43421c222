/*
 * Processes that have limited their system calls (seccomp(2)): would they be killed for those that the agent makes?
 */
#ifndef DTAP_TARGET_SECCOMP_H
#define DTAP_TARGET_SECCOMP_H

#include <stdint.h>
#include <sys/types.h>

#include <linux/filter.h>
#include <linux/seccomp.h>

struct strbuf;

/*
 * Thread @tid of process @pid, stopped under ptrace by this thread.  0: all that the agent needs is allowed or refused by
 * an error; also when the filters are not to be had, which takes CAP_SYS_ADMIN and CONFIG_CHECKPOINT_RESTORE.
 * -EPERM: a call would be the process's end, or is trapped; said at @why.
 */
int seccomp_check(pid_t pid, pid_t tid, struct strbuf *why);

/* What the filter of @n instructions returns for @call (SECCOMP_RET_...); one that makes no sense kills. */
uint32_t seccomp_run(const struct sock_filter *filter, uint32_t n, const struct seccomp_data *call);

#endif
