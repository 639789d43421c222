/*
 * Names for addresses: the stacks that programs told of, and the functions that their addresses lie in.
 *
 * A program sends each stack once, under a number (ABI_REC_STACK, bpf/gen_stack.c); fields and keys then have the
 * number.  Its addresses are looked up when it comes, while its process most likely lives: mappings from /proc, functions
 * from the files mapped, those of the kernel from /proc/kallsyms.  So they can be printed after the process has gone.
 * An address that nobody knows is printed as it is.
 *
 * Frames of Python stand behind the native frame that runs them, a call of the interpreter's evaluator, as
 * "[ file:line (function) ]"; behind all others when there is no such frame, as where native frames end early.
 */
#ifndef DTAP_OUT_NAMES_H
#define DTAP_OUT_NAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ir/ir.h"

struct abi_python;
struct abi_ranges;
struct abi_unwind;
struct names;
struct out_sink;

struct names *names_new(void);	/* or NULL: no memory */
void names_free(struct names *n);	/* accepts NULL */

/* Take a note of what process @pid has mapped now. */
void names_watch(struct names *n, uint32_t pid);

/*
 * What programs need to walk the frames of Python of @pid, as of now: 0.  -ENOENT: it is no Python, or another one;
 * or what the system said.
 */
int names_python(struct names *n, uint32_t pid, struct abi_python *ret);

/* Has the program of @pid not all libraries yet that it links to? */
bool names_is_loading(struct names *n, uint32_t pid);

/*
 * What programs need to walk the native frames of @pid, as of now: where it has which files.  The rows of files that were
 * not met before are added to @tables, as long as there is room.  0, or -ESRCH: the process has gone.
 */
int names_unwind(struct names *n, uint32_t pid, struct abi_ranges *ret, struct abi_unwind *tables);

/*
 * The record of @size bytes at @rec, which says ABI_REC_CODE.  What it lacks is looked for in the memory of the process
 * that it names, if @look.  0, -ENOMEM, or -EINVAL for a damaged one.
 */
int names_add_code(struct names *n, const void *rec, size_t size, bool look);

/* The same of ABI_REC_STACK. */
int names_add(struct names *n, const void *rec, size_t size);

/*
 * Print what @number stands for: a stack as DTrace does, a new line and then a line for each frame, indented by @indent
 * (IR_SHOW_STACK), or the name of the first address.  DTrace guide, "ustack() action", "uaddr() action".
 */
void names_put_stack(const struct names *n, struct out_sink *s, uint64_t number, unsigned int indent);
const char *names_text(const struct names *n, enum ir_show show, uint64_t number, char *buf, size_t size);

/* The name of an address of the kernel's as printf() has it: "module`function+offset". */
const char *names_kernel(struct names *n, uint64_t addr, char *buf, size_t size);

/* Print it as SystemTap does; @show is one of its own (tapset reference, "User-space stack and symbol functions"). */
void names_put_stap(const struct names *n, struct out_sink *s, enum ir_show show, uint64_t number);

/* The number that stands for all those that @show prints like @number: for addresses in one function, one module. */
uint64_t names_same(struct names *n, enum ir_show show, uint64_t number);

#endif
