/*
 * The kernel's tracepoints and the layouts of its structures, from its type information (BTF).
 *
 * For each tracepoint NAME that BPF can attach to, BTF has a type btf_trace_NAME: a pointer to a function, whose
 * parameters, without the first, are the tracepoint's arguments.  Reading BTF takes some ten milliseconds and
 * megabytes, so it is done only for descriptions that need it.
 */
#ifndef DTAP_PROBE_KTYPES_H
#define DTAP_PROBE_KTYPES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bpf/ebpf.h"
#include "lang/desc.h"

struct ktypes;

/* NULL: this kernel has no BTF, or it cannot be read. */
struct ktypes *ktypes_new(void);
void ktypes_free(struct ktypes *k);	/* accepts NULL */

struct btf;

/* libbpf's handle. */
const struct btf *ktypes_btf(const struct ktypes *k);

/* Call @fn with the name of each tracepoint. */
void ktypes_each(const struct ktypes *k, void (*fn)(void *ctx, const char *tracepoint), void *ctx);

/* The number of arguments of tracepoint @name, or -1 if it does not exist.  @sig, if not NULL, gets their types. */
int ktypes_args(const struct ktypes *k, const char *name, struct probe_sig *sig);

/* Write the C type of argument @i of tracepoint @name as in a script; false: it is too long, or has no name. */
bool ktypes_arg_text(const struct ktypes *k, const char *name, unsigned int i, char *buf, size_t size);

/*
 * The value that @text describes, among those of tracepoint @name:
 *
 *	2				its argument 2
 *	2:task_struct.pid		member pid of the struct task_struct that argument 2 points to
 *	0:pt_regs.di			likewise
 *	0:task_struct.signal:signal_struct.live.counter		a path through further structures
 *	current:task_struct.pid		likewise, of the task that runs
 *	errno 1, reason ...		see enum ebpf_tp_kind
 *
 * False: this kernel does not have it.
 */
bool ktypes_value(const struct ktypes *k, const char *name, const char *text, struct ebpf_tp_value *v);

/*
 * The byte offset, size and sign of @path ("task_struct.pid").  False: it is not a scalar, or does not exist; *off is
 * then unchanged.
 */
bool ktypes_member(const struct ktypes *k, const char *path, uint32_t *off, uint8_t *size, bool *sign);

/* The name of argument @i of tracepoint @name; NULL: none. */
const char *ktypes_arg_name(const struct ktypes *k, const char *name, unsigned int i);

/*
 * A step from an address to the value of @width bytes at offset @off or, if @width is 0, to that address.  @element
 * not 0: @scale times the index, name number @element - 1, is added to the offset.
 */
struct ktypes_step {
	uint32_t off, scale;
	unsigned int element;
	uint8_t width;
	bool sign;
};

/* The number of a type, or 0: of argument @i of tracepoint @name; of "struct x", "union x" or a typedef. */
uint32_t ktypes_arg_type(const struct ktypes *k, const char *name, unsigned int i);
uint32_t ktypes_find(const struct ktypes *k, const char *name);

/*
 * The @n members @names one inside the other, NULL for an element of an array, of the structure @type or (a pointer) that
 * it points to: up to @max steps, how many is returned; -1: no such members, or no value.  *string: what is there is text; *target: the structure that
 * the value points to, or 0.
 */
int ktypes_walk(const struct ktypes *k, uint32_t type, const char *const *names, size_t n, struct ktypes_step *steps,
		unsigned int max, bool *string, uint32_t *target);

#endif
