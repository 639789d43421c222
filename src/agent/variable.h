/* SPDX-License-Identifier: MIT */
/*
 * The variables of the function at an event: those of the thread's innermost frame, by the names in its code object.
 *
 * Functions return 0 and the object's address, or enum abi_fault; ABI_FAULT_VALUE_NONE if there is no such variable, or
 * it has no value yet.  Objects found are alive until the next event (object.h).  With the GIL.
 */
#ifndef AGENT_VARIABLE_H
#define AGENT_VARIABLE_H

#include <stdbool.h>
#include <stdint.h>

struct shm_run;

/* Parameter @n from 0: first the positional ones, then the keyword-only ones. */
int variable_parameter(struct shm_run *r, uint64_t n, uint64_t *ret);

/*
 * The variable that variable_named() found last by the text at @id in the same function.  False: not found in this
 * quick way; call variable_named().
 */
bool variable_hinted(uint64_t id, bool parameters, uint64_t *ret);

struct vm_thread;

/* ABI_HELPER_INTEGER (vm/shm.h): for a parameter that variable_hinted() finds, or a number, and an int of one digit. */
uint64_t variable_integer(uint64_t dst, uint64_t size, uint64_t what, uint64_t number, uint64_t name, struct vm_thread *t);

/* Forget all hints: the texts may change now.  Called between events. */
void variable_forget(void);

/* A name in a script; @id: unique for each name, such as the address of its text. */
struct variable_name {
	const char *text;
	uint32_t length;
	uint64_t id;
};

/*
 * The variable called @name.  With @parameters, only parameters, including those of *args and **kwargs; else any
 * variable of the function or of enclosing functions.
 */
int variable_named(struct shm_run *r, const struct variable_name *name, bool parameters, uint64_t *ret);

/*
 * Where the values on the stack of the function at an event begin: words of the frame, of which variable_of_slot() has the
 * objects.  False: not known.
 */
bool variable_stack(struct shm_run *r, const uint64_t **ret);

/* The object in a word of a frame; 0: none. */
uint64_t variable_of_slot(uint64_t raw);

/*
 * Call @fn for each selected variable (enum abi_variables), with its name, a str, and its value, 0: none yet; stop if
 * @fn does not return 0.
 */
int variable_each(struct shm_run *r, unsigned which, int (*fn)(void *ctx, uint64_t name, uint64_t value), void *ctx);

/* The variable called @name, of the function or of enclosing functions, or else a global variable. */
int variable_any(struct shm_run *r, const struct variable_name *name, uint64_t *ret);

#endif
