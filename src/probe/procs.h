/*
 * The processes there are and the files they execute, from /proc.
 */
#ifndef DTAP_PROBE_PROCS_H
#define DTAP_PROBE_PROCS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct abi_process_key;
struct strbuf;

/* An executable mapping of a file. */
struct procs_map {
	uint32_t pid;
	uint64_t start, end;		/* addresses */
	uint64_t off;			/* of @start in the file */
	uint64_t dev, ino;		/* dev as makedev has it */
	const char *path;		/* as the process's mount namespace names it, without " (deleted)" */
};

/*
 * Call @fn for each executable file mapping of @pid, in the order of addresses, until it does not return 0.
 * A kernel thread or a zombie has none.  0, what @fn returned, or a negative errno.
 */
int procs_maps(uint32_t pid, int (*fn)(void *ctx, const struct procs_map *m), void *ctx);

/* The process that @pid is a child of; 0: nobody knows. */
uint32_t procs_parent(uint32_t pid);

/* The key by which programs know process @pid. 0 or a negative errno. */
int procs_key(uint32_t pid, struct abi_process_key *ret);

/* Call @fn for each process, in the order of pids. 0 or a negative errno. */
int procs_each(void (*fn)(void *ctx, uint32_t pid), void *ctx);

/*
 * Device and inode of the file @path as the kernel has them in struct file, for who executes it (ebpf_env.exe_dev), and
 * as /proc/PID/maps has them.  Some file systems show other ones in stat (btrfs), or each time others (overlayfs before
 * Linux 6.8).  0 or -errno.
 */
int procs_identify(const char *path, uint64_t *dev, uint64_t *ino);
int procs_identify_mapped(const char *path, uint64_t *dev, uint64_t *ino);

/* How long ago @pid was forked; UINT64_MAX: there is no such process. */
uint64_t procs_age_ms(uint32_t pid);

/* Is @pid the process @ancestor, or a child, or a child's child ...?  One whose parent has ended is not. */
bool procs_descends(uint32_t pid, uint32_t ancestor);

/*
 * Open the mapped file itself, whatever root and mount namespace its process lives in, deleted or not, and
 * put a path that leads to it into @path.  A descriptor, or a negative errno.
 */
int procs_open(const struct procs_map *m, struct strbuf *path);

#endif
