/* SPDX-License-Identifier: MIT */
/* Numbers as text, in static memory: no allocation, no C library, no locale.  One caller at a time. */
#ifndef AGENT_DIGITS_H
#define AGENT_DIGITS_H

#include <stdbool.h>
#include <stdint.h>

enum { DIGITS_FLOAT = 32 };		/* maximum size of a float's text, with its NUL */
enum { DIGITS_INT_MOST = 480, DIGITS_INT_TEXT = 4400 };	/* digits of 30 bits; bytes of their text, with sign and NUL */

/* As by repr(float): the shortest decimal that reads back as @value.  Returns its bytes without the NUL. */
uint32_t digits_float(char to[DIGITS_FLOAT], double value);

/*
 * The number with the @n digits @v of 30 bits each, the lowest first; @v is overwritten.  @below: it is negative.
 * *text is static.  Returns the bytes without the NUL.
 */
uint32_t digits_int(uint32_t *v, uint32_t n, bool below, const char **text);

#endif
