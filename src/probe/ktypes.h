/*
 * The kernel's tracepoints and where in its structures things are, from its own type information (BTF).
 *
 * For each tracepoint NAME that BPF can attach to, BTF has a type btf_trace_NAME: a pointer to a function, whose
 * parameters behind the first are what the tracepoint gives.  Reading BTF takes some ten milliseconds and megabytes, so
 * it is done only for descriptions that need it.
 */
#ifndef DTAP_PROBE_KTYPES_H
#define DTAP_PROBE_KTYPES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bpf/ebpf.h"
#include "lang/desc.h"

struct ktypes;

/* NULL: this kernel has none, or they cannot be read. */
struct ktypes *ktypes_new(void);
void ktypes_free(struct ktypes *k);	/* accepts NULL */

struct btf;

/* libbpf's own. */
const struct btf *ktypes_btf(const struct ktypes *k);

/* Call @fn with the name of each tracepoint. */
void ktypes_each(const struct ktypes *k, void (*fn)(void *ctx, const char *tracepoint), void *ctx);

/* What tracepoint @name gives: how many values, or -1 when there is no such one.  @sig may be NULL. */
int ktypes_args(const struct ktypes *k, const char *name, struct probe_sig *sig);

/* The C type of argument @i of tracepoint @name, as a script writes it; false: it is too long, or has no name. */
bool ktypes_arg_text(const struct ktypes *k, const char *name, unsigned int i, char *buf, size_t size);

/*
 * The value that @text describes, among those of tracepoint @name:
 *
 *	2				its argument 2
 *	2:task_struct.pid		member pid of the struct task_struct that argument 2 points to
 *	0:pt_regs.di			likewise
 *	0:task_struct.signal:signal_struct.live.counter		and on from there
 *	current:task_struct.pid		likewise, of the task that runs
 *	errno 1, reason ...		see enum ebpf_tp_kind
 *
 * False when this kernel has nothing of the kind.
 */
bool ktypes_value(const struct ktypes *k, const char *name, const char *text, struct ebpf_tp_value *v);

/* The byte offset of @path ("task_struct.pid"), and how to read what is there; false when it is no scalar, or not there:
 * *off is then untouched. */
bool ktypes_member(const struct ktypes *k, const char *path, uint32_t *off, uint8_t *size, bool *sign);

/* What argument @i of tracepoint @name is called; NULL: there is none. */
const char *ktypes_arg_name(const struct ktypes *k, const char *name, unsigned int i);

/*
 * From an address to the value at it, or (width 0) to the address @off behind it.  Element: @scale times the index that
 * stands there as name number @element - 1 is added; 0: there is none.
 */
struct ktypes_step {
	uint32_t off, scale;
	unsigned int element;
	uint8_t width;
	bool sign;
};

/* Types by number, 0: there is none: of argument @i of tracepoint @name; "struct x", "union x" or a typedef's name. */
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
