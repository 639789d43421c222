/* SPDX-License-Identifier: MIT */
/*
 * Names from code objects and other strings of the interpreter.  All return UTF-8 that ends in a NUL, is never
 * NULL, and lives as long as the string object: CPython keeps the UTF-8 form inside it, and a code object keeps its
 * strings.  A string without a UTF-8 form (lone surrogates) is "<unknown>".  No exception stays behind.  They need
 * the GIL, and are not called with an exception set.
 */
#ifndef AGENT_CODE_H
#define AGENT_CODE_H

#include <stdbool.h>

struct pyobj;

/* Measure where code objects keep their names.  False when that cannot be told for certain. */
bool code_measure(void);

/* co_filename and co_name of the code object @code; the text of the str @str. */
const char *code_file(struct pyobj *code);
const char *code_name(struct pyobj *code);
const char *code_text(struct pyobj *str);

#endif
