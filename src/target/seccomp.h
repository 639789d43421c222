/*
 * Seccomp filters (seccomp(2)): would they kill a process for the system calls that the agent makes?
 */
#ifndef DTAP_TARGET_SECCOMP_H
#define DTAP_TARGET_SECCOMP_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include <linux/filter.h>
#include <linux/seccomp.h>

struct strbuf;

/*
 * Check the filters of thread @tid of process @pid, which this thread has stopped by ptrace, and whose status
 * (proc_pid_status(5)) is @status.  0: all calls that the agent needs (abi/calls.def) are allowed or fail with an error;
 * the groups of optional calls that would be fatal are added to *@forbidden.  -EPERM, explained in @why: a needed call would
 * kill the process, or is trapped; or the filters cannot be read (that takes CAP_SYS_ADMIN and CONFIG_CHECKPOINT_RESTORE) and
 * are not the same as this process's own.
 */
int seccomp_check(pid_t pid, pid_t tid, const char *status, bool is_musl, uint32_t *forbidden, struct strbuf *why);

/*
 * Would thread @tid, stopped under ptrace by this thread, be killed when the kernel restarts its interrupted call by
 * restart_syscall(2)?  The kernel does so for waits with a relative timeout, and some filters do not allow that call.
 */
bool seccomp_kills_restart(pid_t tid);

/*
 * Do the filters of such a thread forbid process_vm_readv(2) and process_vm_writev(2) on its own memory?  1; 0: they
 * allow the calls or make them fail with an error; -EACCES: the filters cannot be read.
 */
int seccomp_forbids_memory(pid_t pid, pid_t tid);

/* What the filter of @n instructions returns for @call (SECCOMP_RET_...); an invalid filter kills. */
uint32_t seccomp_run(const struct sock_filter *filter, uint32_t n, const struct seccomp_data *call);

#endif
