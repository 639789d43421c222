/*
 * Reading the text files in /proc/PID.
 */
#ifndef DTAP_BASE_PROC_H
#define DTAP_BASE_PROC_H

#include <stddef.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/strbuf.h"

/* Append all of /proc/@pid/@file to @out, which the caller releases in each case.  0 or a negative errno. */
int proc_read(pid_t pid, const char *file, struct strbuf *out);

/*
 * A descriptor of the folder /proc/@pid: what is read through it is of this process, also when another one has its number
 * later.  -ESRCH, or another negative errno.
 */
int proc_open(pid_t pid);

/* Append @file of the process that @proc is a folder of.  A process says how long its environment is: at most @max bytes. */
int proc_read_at(int proc, const char *file, size_t max, struct strbuf *out);

/* The value of "@name:" in @status, the text of /proc/PID/status, or NULL. */
const char *proc_status_field(const char *status, const char *name);

/*
 * The last number of such a list as "NSpid:", the id in the innermost pid namespace (proc_pid_status(5)); 0: there is none.
 * *@depth, unless NULL: how many there are.
 */
long proc_innermost_id(const char *status, const char *name, size_t *depth);

/*
 * Fields of /proc/PID/stat, and bits of STAT_FLAGS (include/linux/sched.h, PF_EXITING, PF_FORKNOEXEC: no exec since the fork, and
 * PF_KTHREAD).  The times are in clock ticks (sysconf(_SC_CLK_TCK)); STAT_START_TIME counts from the machine's start.
 */
enum {
	STAT_STATE = 3, STAT_PARENT = 4, STAT_FLAGS = 9, STAT_USER_TIME = 14, STAT_SYSTEM_TIME = 15, STAT_START_TIME = 22,
	STAT_EXIT_CODE = 52,
};
enum { PROCESS_EXITING = 0x4, PROCESS_FORKED = 0x40, PROCESS_KTHREAD = 0x00200000 };

/*
 * Field @nr, at least 3 and counted as in proc_pid_stat(5), of @stat, the text of /proc/PID/stat.  proc_stat_at: the
 * text from there on, or NULL; proc_stat_field: its number, or 0.  Field 2 is the program's name, which may contain any
 * character; the last parenthesis ends it.
 */
const char *proc_stat_at(const char *stat, int nr);
uint64_t proc_stat_field(const char *stat, int nr);

/* The time of the processor that the process or thread of @stat has had, in clock ticks. */
uint64_t proc_stat_cpu_time(const char *stat);

/* Why the pids under /proc are not those that system calls take, in this process's pid namespace; NULL: they are. */
const char *proc_refusal(void);

/* Is the address space of process @pid (0: this one) limited (RLIMIT_AS)? */
bool proc_is_limited(pid_t pid);

#endif
