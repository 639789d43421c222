/*
 * Running processes and the files that they execute, from /proc.
 */
#ifndef DTAP_PROBE_PROCS_H
#define DTAP_PROBE_PROCS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct abi_process_key;
struct file;
struct strbuf;

/* An executable mapping of a file. */
struct procs_map {
	uint32_t pid;
	uint64_t start, end;		/* addresses */
	uint64_t off;			/* offset of @start in the file */
	uint64_t dev, ino;		/* dev as makedev(3) makes it */
	const char *path;		/* in the process's mount namespace, without " (deleted)" */
};

/*
 * Call @fn for each executable file mapping of @pid, in the order of addresses, until it does not return 0.
 * A kernel thread or a zombie has none.  0, what @fn returned, or a negative errno.
 */
int procs_maps(uint32_t pid, int (*fn)(void *ctx, const struct procs_map *m), void *ctx);

/* The parent of process @pid; 0: unknown. */
uint32_t procs_parent(uint32_t pid);

/* The key by which programs know process @pid. 0 or a negative errno. */
int procs_key(uint32_t pid, struct abi_process_key *ret);

/* Call @fn for each process, in the order of pids. 0 or a negative errno. */
int procs_each(void (*fn)(void *ctx, uint32_t pid), void *ctx);

/*
 * The kernel's own device and inode of @f, for comparison with a process's executable (ebpf_env.exe_dev).  With some
 * file systems stat(2) returns others (btrfs), or different ones each time (overlayfs before Linux 6.8).  0 or
 * -errno.
 */
int procs_identify(const struct file *f, uint64_t *dev, uint64_t *ino);

/* Is there a process @pid that has not ended?  A zombie has. */
bool procs_is_alive(uint32_t pid);

/* How long ago @pid was forked; UINT64_MAX: there is no such process. */
uint64_t procs_age_ms(uint32_t pid);

/* Was @pid forked just now, so that it may not have executed its program yet?  False for a stopped process. */
bool procs_is_starting(uint32_t pid);

/* Is @pid the process @ancestor or one of its descendants?  Not if a process in between has ended. */
bool procs_descends(uint32_t pid, uint32_t ancestor);

/* The effective user of @pid.  0 or -ESRCH. */
int procs_user(uint32_t pid, uid_t *user);

/* Open the file that is mapped, like maps_open(). */
int procs_open(const struct procs_map *m, struct file **ret, struct strbuf *why);

#endif
