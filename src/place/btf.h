/*
 * Offsets in struct task_struct for facts that no eBPF helper returns, from the kernel's type information
 * (/sys/kernel/btf/vmlinux).
 *
 * Reading it takes some milliseconds and megabytes, so it is done only for programs that need it.
 */
#ifndef DTAP_PLACE_BTF_H
#define DTAP_PLACE_BTF_H

#include <stdint.h>

#include "bpf/ebpf.h"

struct strbuf;

/* Byte offsets from the start of struct task_struct. */
struct btf_task {
	uint32_t real_parent;		/* pointer to the parent's task_struct */
	uint32_t tgid;			/* of 4 bytes */
	uint32_t sum_exec_runtime;	/* ns on a CPU up to the last scheduler tick or switch, 8 bytes */
	uint32_t exec_start;		/* time of that tick or switch, on the run queue's task clock, 8 bytes */
	uint32_t nvcsw, nivcsw;		/* how often it was switched out, by itself and otherwise, 8 bytes each; 0: unknown */
	uint32_t last_arrival;		/* when it was last switched in, on the run queue's clock, 8 bytes; 0: unknown */
	uint32_t mm;			/* pointer to struct mm_struct, in which: */
	uint32_t arg_start, arg_end;	/* user-space addresses of the arguments, 8 bytes each */
	uint32_t exe_file;		/* pointer to the program's struct file, in which: */
	uint32_t f_inode;		/* pointer to struct inode, in which: */
	uint32_t i_ino, i_sb;		/* its number, 8 bytes; pointer to struct super_block, in which: */
	uint32_t s_dev;			/* 4 bytes */
	uint32_t start_code, start_stack;	/* in mm_struct: of the program and its stack, 8 bytes each */
	uint32_t tls;			/* the thread pointer, 8 bytes; 0: not known for this machine */
	/*
	 * Pointer to struct cfs_rq, which has a pointer to struct rq, which has the clock and the task clock, 8 bytes
	 * each.  0: a kernel without CONFIG_FAIR_GROUP_SCHED.
	 */
	uint32_t cfs_rq, rq, clock, clock_task;
	struct ebpf_paths paths;
	struct ebpf_returns returns;
	struct ebpf_tasks tasks;	/* facts that this kernel lacks have no offsets */
};

/* 0, or a negative errno with a line in @err: a kernel without BTF, or one whose structures changed. */
int btf_task(struct btf_task *ret, struct strbuf *err);

#endif
