/*
 * The kernel place: programs run in the kernel, when uprobes, perf events or the tracer itself fire them.
 *
 * If the tracer dies without freeing the place, the kernel closes its file descriptors, which has the same
 * effect: breakpoints are removed, semaphores get their old values, the target continues.
 *
 * Uses libbpf's low-level calls, and bpf(2) itself for uprobe_multi links, which Debian 12's libbpf
 * does not support.  Sources: include/uapi/linux/bpf.h, include/uapi/linux/perf_event.h; kernel 5.17 or later.
 */
#ifndef DTAP_PLACE_KERNEL_H
#define DTAP_PLACE_KERNEL_H

#include "place/place.h"

struct strbuf;

/*
 * May this process use BPF and uprobes at all?  0, or a negative errno with the missing capability or kernel
 * option in @err.
 */
int kernel_available(struct strbuf *err);

/*
 * In how many pid namespaces that of this process is; 0: it is the first, or @tasks or the kernel do not tell.  Runs a
 * program that reads it.
 */
uint32_t kernel_pid_level(const struct ebpf_tasks *tasks);

/* Create the maps of @unit, which must outlive the place.  state is ABI_STATE_OFF. */
int kernel_new(const struct ebpf_unit *unit, struct place **ret, struct strbuf *err);

#endif
