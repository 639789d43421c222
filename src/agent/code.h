/* SPDX-License-Identifier: MIT */
/*
 * Names from code objects and other strings of the interpreter.  All functions return NUL-terminated UTF-8, never NULL,
 * which lives as long as the string object: CPython keeps the UTF-8 form inside it, and a code object keeps its
 * strings.  A string without a UTF-8 form (lone surrogates) is "<unknown>".  No exception is left set.  Called with the
 * GIL and without an exception set.
 */
#ifndef AGENT_CODE_H
#define AGENT_CODE_H

#include <stdbool.h>
#include <stddef.h>

struct pyobj;

/* Measure the offsets of the names in code objects.  False: they cannot be determined with certainty. */
bool code_measure(void);

/*
 * The offset, in the first @size bytes of @object, of a pointer to the value of its attribute @attr; -1 if there is
 * none or several.  Leaves an exception if there is no such attribute.
 */
long code_find_attr(struct pyobj *object, long size, const char *attr);

/* co_filename and co_name of the code object @code; the text of the str @str. */
const char *code_file(struct pyobj *code);
const char *code_name(struct pyobj *code);
const char *code_text(struct pyobj *str);

/* The size in bytes that every code object has at least, or 0. */
size_t code_size(struct pyobj *code);

/* Are qualified names known?  If so, code_qualname() returns @code's. */
bool code_has_qualname(void);
const char *code_qualname(struct pyobj *code);

#endif
