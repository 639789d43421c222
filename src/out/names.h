/*
 * Names for addresses: the stacks that programs sent, and the functions that contain their addresses.
 *
 * A program sends each stack once, under a number (ABI_REC_STACK, bpf/gen_stack.c); fields and keys then have the
 * number.  Its addresses are looked up on arrival, while its process most likely exists (probe/symbols.h), so they can
 * be printed after the process has ended.  An unknown address is printed as a number.
 *
 * Python frames follow the native frame that runs them, a call of the interpreter's evaluator, as
 * "[ file:line (function) ]".  If there is no such frame, because native frames end early, they follow all others.
 */
#ifndef DTAP_OUT_NAMES_H
#define DTAP_OUT_NAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ir/ir.h"

struct names;
struct out_sink;
struct symbols;
struct record;

/*
 * Traced processes are not trusted, and one could send new stacks and code objects without end: once the names take
 * @max bytes, no more are accepted, and further stacks and code objects have no names.  @symbols must outlive the
 * result.  NULL: no memory.
 */
struct names *names_new(struct symbols *symbols, size_t max);

/* From now on, user addresses are shown as numbers after the name of the file mapped there (-x noresolve). */
void names_as_numbers(struct names *n, bool on);
void names_free(struct names *n);	/* accepts NULL */

/*
 * Add the code object of @rec, an ABI_REC_CODE.  If @look, what the record lacks is read from the memory of its
 * process.  0, -ENOMEM, -EINVAL for a malformed one, or -ENOSPC: no room.
 */
int names_add_code(struct names *n, const struct record *rec, bool look);

/* Add the stack of an ABI_REC_STACK, with the same results. */
int names_add(struct names *n, const struct record *rec);

/*
 * Print the stack @number as DTrace does: a newline and then a line for each frame, indented by @indent
 * (IR_SHOW_STACK); names_text: the name of its first address.  DTrace guide, "ustack() action", "uaddr() action".
 */
void names_put_stack(const struct names *n, struct out_sink *s, uint64_t number, unsigned int indent);
const char *names_text(const struct names *n, enum ir_show show, uint64_t number, char *buf, size_t size);

/* The name of a kernel address as printf() shows it: "module`function+offset". */
const char *names_kernel(struct names *n, uint64_t addr, char *buf, size_t size);

/*
 * Print stack @number by @show, IR_SHOW_FRAMES_FULL or a later one (SystemTap's tapset reference, "User-space stack and
 * symbol functions").
 */
bool names_knows(const struct names *n, uint64_t number);
void names_put_shown(const struct names *n, struct out_sink *s, enum ir_show show, uint64_t number);

/*
 * One number for all those that @show prints like @number: for addresses in the same function or module, and for stacks with
 * frames of Python in the same lines, at whatever instruction of these.
 */
uint64_t names_same(struct names *n, enum ir_show show, uint64_t number);

#endif
