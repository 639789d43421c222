/*
 * The data with which programs walk the stacks of a process: where Python keeps its frames, and unwind rows for
 * native frames.
 */
#ifndef DTAP_PROBE_WALKS_H
#define DTAP_PROBE_WALKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct abi_python;
struct abi_ranges;
struct symbols;

/*
 * The data for walking Python frames of @pid now.  0; -ENOENT: not a Python, or an unknown one; or another negative
 * errno.
 */
int walks_python(struct symbols *s, uint32_t pid, struct abi_python *ret);

/* Does the program of @pid still lack libraries that it is linked to? */
bool walks_is_loading(struct symbols *s, uint32_t pid);

/*
 * The data for walking native frames of @pid now: the files that it maps, and where.  Rows of files that are new are
 * passed to @write, with their position in struct abi_unwind, as long as there is room.  0, or -ESRCH: the process
 * has ended.
 */
int walks_unwind(struct symbols *s, uint32_t pid, struct abi_ranges *ret,
		 int (*write)(void *ctx, size_t off, const void *bytes, size_t size), void *ctx);

#endif
